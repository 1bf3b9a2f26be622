"""One image on its way to a host: read, stored, converted if need be, and only then complete.

Blocks. While it lasts a volume beside the image grows, so that others see that somebody lives; in
it is how far the image is, so that whoever comes after a death goes on from there.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from novacron.core.errors import Busy, DriverError, Rejected
from novacron.drivers.libvirt.partial import Partial, Record
from novacron.drivers.libvirt.pool import Pool
from novacron.drivers.libvirt.progress import Progress
from novacron.drivers.libvirt.shelf import DOWNLOAD, InStock, Shelf, claim, new_stem, taken
from novacron.images import Fetch, Inspected, Limits, converted

__all__ = ["Bringing"]

BEAT_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class _Stored:
    """An image in another format that is on the host as it came, whole and checked."""

    shown: str
    inspected: Inspected
    limits: Limits
    done: int
    pool: Pool
    volume: str

    def chunks(self) -> Iterator[bytes]:
        """Return its bytes."""
        return self.pool.parts(self.volume, self.done)


class Bringing:
    """Brings one image to a pool, and shows that somebody is at it."""

    def __init__(self, pool: Pool, progress: Progress, clock: Callable[[], float]) -> None:
        self._pool = pool
        self._progress = progress
        self._clock = clock
        self._stem: str | None = None
        self._record: Record | None = None
        self._fetch: Fetch | None = None
        self._beats = 0
        self._last = 0.0

    def beat(self) -> None:
        """Show that somebody is at it, as long as anybody wants it; called all the time."""
        self._progress.require_wanted()
        if self._fetch is not None:
            self._progress.done = self._fetch.done
        if self._clock() - self._last >= BEAT_SECONDS:
            self._note()

    def _note(self) -> None:
        """Write down how far it is."""
        if self._stem is None or self._record is None:
            return
        self._beats += 1
        self._record.write(self._pool, self._stem, self._beats)
        self._last = self._clock()

    def bring(
        self, lot: str, fetch: Fetch, scratch: Path | None, partial: Partial | None
    ) -> InStock:
        """Bring an image that was opened, or the rest of it."""
        stem = partial.stem if partial else new_stem(lot)
        self._fetch, self._stem = fetch, stem
        self._progress.total = fetch.length
        ending = DOWNLOAD if fetch.inspected.is_foreign else f".{fetch.inspected.format}"
        self._record = Record(f"{stem}{ending}", fetch.version, fetch.length or 0)
        try:
            self._download(fetch, partial)
            made = self._usable(stem, fetch, scratch)
        except DriverError as error:
            self._give_up(stem, fetch, error)
            raise
        except BaseException:
            self._forget(stem)
            raise
        finally:
            # It has our beat: each would keep the other, and with them a connection, for a while.
            self._fetch = None
        self._close(stem)
        return made

    def _download(self, fetch: Fetch, partial: Partial | None) -> None:
        """Have all bytes of an image in the pool, and see that they are the right ones."""
        assert self._record is not None
        name = self._record.volume
        if partial is None:
            self._note()
            self._pool.empty(name, fetch.length or 0, "raw")
        else:
            self._record, self._beats = replace(partial.record, left=False), partial.beats
            self._note()
            fetch.go_on_after(self._beating(self._pool.parts(name, partial.record.stored)))
        self._pool.go_on(name, self._record.stored, self._counted(fetch), self._stored)

    def _counted(self, fetch: Fetch) -> Iterator[bytes]:
        for chunk in fetch.chunks():
            self.beat()
            yield chunk

    def _stored(self, count: int) -> None:
        assert self._record is not None
        self._record = replace(self._record, stored=count)
        self._note()

    def _usable(self, stem: str, fetch: Fetch, scratch: Path | None) -> InStock:
        """Have the image in a format that machines can be on top of, and say that it is whole."""
        assert self._record is not None
        made = InStock(
            self._record.volume,
            fetch.inspected.format,
            fetch.inspected.virtual_bytes or fetch.done,
        )
        if fetch.inspected.is_foreign:
            made = self._converted(stem, fetch, scratch)
        # Nobody is on top of ours before it is said to be whole, so it is ours that goes.
        if (theirs := self._brought_elsewhere(made)) is not None:
            self._pool.remove(made.volume)
            return theirs
        if self._pool.find(made.volume) is None:
            raise Busy("somebody removed the image while it was brought", reason="ImageIncomplete")
        self._pool.empty(made.mark, 0, "raw")
        return made

    def _brought_elsewhere(self, made: InStock) -> InStock | None:
        """Return the same image if somebody had it whole first, from another place, and use it."""
        found = Shelf(self._pool.names()).find(made.key)
        if found is None or found.volume == made.volume:
            return None
        self._pool.touch(found.mark)
        return found

    def _converted(self, stem: str, fetch: Fetch, scratch: Path | None) -> InStock:
        assert self._record is not None
        whole = _Stored(
            fetch.shown,
            fetch.inspected,
            fetch.limits,
            fetch.done,
            self._pool,
            self._record.volume,
        )
        with converted(whole, scratch, self.beat) as ready:
            kind = ready.inspected.format
            self._pool.fill(f"{stem}.{kind}", ready.length, self._beating(ready.chunks()))
        self._pool.remove(whole.volume)
        return InStock(f"{stem}.{kind}", kind, ready.inspected.virtual_bytes or ready.length)

    def _beating(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self.beat()
            yield chunk

    def _give_up(self, stem: str, fetch: Fetch, error: DriverError) -> None:
        """Leave what can be gone on with, and nothing that will never do."""
        assert self._record is not None
        if isinstance(error, Rejected) or not self._record.stored or not fetch.resumable:
            self._forget(stem)
        else:
            self._record = replace(self._record, left=True)
            self._note()

    def _forget(self, stem: str) -> None:
        assert self._record is not None
        self._pool.remove(self._record.volume)
        self._close(stem)

    def _close(self, stem: str) -> None:
        """Take away all that was about the work."""
        self._pool.remove(claim(stem))
        for name in self._pool.names():
            if name.startswith(taken(stem, "")):
                self._pool.remove(name)
        self._stem = self._record = None
