"""One image on its way to a host: read, converted if need be, stored, and only then complete.

Blocks. While it lasts a volume beside the image grows, so that others see that somebody lives.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from novacron.core.errors import Busy
from novacron.drivers.libvirt.pool import Pool
from novacron.drivers.libvirt.progress import Progress
from novacron.drivers.libvirt.shelf import InStock, claim, mark, new_stem
from novacron.images import Converted, Fetch, converted

__all__ = ["Bringing"]

BEAT_SECONDS = 3.0
BEAT_BYTES = 4096


class Bringing:
    """Brings one image to a pool, and shows that somebody is at it."""

    def __init__(self, pool: Pool, progress: Progress, clock: Callable[[], float]) -> None:
        self._pool = pool
        self._progress = progress
        self._clock = clock
        self._claim: str | None = None
        self._fetch: Fetch | None = None
        self._beats = 0
        self._last = 0.0

    def beat(self) -> None:
        """Show that somebody is at it; called all the time."""
        if self._fetch is not None:
            self._progress.done = self._fetch.done
        if self._claim is None or self._clock() - self._last < BEAT_SECONDS:
            return
        self._beats += 1
        self._pool.fill(self._claim, 0, [bytes(BEAT_BYTES * self._beats)])
        self._last = self._clock()

    def bring(self, key: str, fetch: Fetch, scratch: Path | None) -> InStock:
        """Bring an image that was opened."""
        stem = new_stem(key)
        self._fetch, self._claim = fetch, claim(stem)
        self._progress.total = fetch.length
        try:
            self.beat()
            with self._usable(fetch, scratch) as ready:
                return self._store(stem, ready)
        finally:
            self._pool.remove(self._claim)
            self._claim = None

    def _usable(
        self, fetch: Fetch, scratch: Path | None
    ) -> AbstractContextManager[Fetch | Converted]:
        if not fetch.inspected.is_foreign:
            return nullcontext(fetch)
        return converted(fetch, scratch, self.beat)

    def _store(self, stem: str, ready: Fetch | Converted) -> InStock:
        name = f"{stem}.{ready.inspected.format}"
        count = 0

        def counted() -> Iterator[bytes]:
            nonlocal count
            for chunk in ready.chunks():
                count += len(chunk)
                self.beat()
                yield chunk

        self._pool.fill(name, ready.length or 0, counted())
        size = ready.inspected.virtual_bytes or count
        if self._pool.find(name) is None:
            raise Busy("somebody removed the image while it was brought", reason="ImageIncomplete")
        self._pool.fill(mark(name, size), 1, [b"\n"])
        return InStock(name, ready.inspected.format, size)
