"""The images a host has in stock, so that many machines share one. Blocks.

Finds them, brings those that are missing, and keeps order among them. Whoever brings one makes
progress and shows it, or gives up, so what stands still for long enough is nobody's.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from hashlib import file_digest
from pathlib import Path

from novacron.core.errors import Busy, Rejected
from novacron.core.image import PullPolicy
from novacron.drivers.libvirt.clearance import clear_images
from novacron.drivers.libvirt.host_file import HostFileBytes, close_source, open_sources
from novacron.drivers.libvirt.pool import Pool
from novacron.drivers.libvirt.progress import Progress
from novacron.drivers.libvirt.shelf import InStock, Shelf, alias, claim, key_of, mark, new_stem
from novacron.images import (
    Bytes,
    Converted,
    Fetch,
    FileBytes,
    HostFile,
    Limits,
    Located,
    checksum_from,
    converted,
    open_image,
)

__all__ = ["InStock", "Stock", "Workshop"]

# Twice as long as a claim takes to grow, even while a source is silent.
ABANDONED_SECONDS = 20.0
LOOK_SECONDS = 1.0
BEAT_SECONDS = 3.0
BEAT_BYTES = 4096
TOUCH_SECONDS = 30.0
AGAIN = timedelta(seconds=20)
USUAL_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Workshop:
    """What images may be like, and where those in other formats are converted."""

    limits: Limits = USUAL_LIMITS
    scratch: Path | None = None


@dataclass(slots=True)
class Stock:
    """Finds images in a pool, and brings those that are missing."""

    workshop: Workshop = Workshop()
    most_bytes: int | None = None
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    _touched: dict[str, float] = field(default_factory=dict)
    _standing: dict[str, tuple[int, float]] = field(default_factory=dict)
    _sources: dict[str, float] = field(default_factory=dict)

    def ensure(self, pool: Pool, located: Located, pull: PullPolicy, progress: Progress) -> InStock:
        """Return the image, brought here if need be."""
        checksum = located.checksum or _own_checksum(located)
        found = self._present(pool, located, checksum, pull)
        if found is None and pull is PullPolicy.NEVER:
            raise Rejected(
                f"image {located.source} is not on the host, and its pullPolicy is Never",
                reason="ImageNotPresent",
                again=AGAIN,
            )
        if found is None and checksum is None and located.checksums is not None:
            address = getattr(located.place, "url", located.source)
            checksum = checksum_from(located.checksums, address)
            found = Shelf(pool.names()).find(key_of(checksum))
        found = found or self._brought(pool, located, checksum, progress)
        self._touch(pool, found)
        _remember(pool, located, found)
        return found

    def tidy(self, pool: Pool) -> None:
        """Remove what nobody will finish or ask for; called every now and then."""
        shelf = Shelf(pool.names())
        for name in shelf.stale():
            pool.remove(name)
        unfinished = shelf.unfinished()
        for stem in set(self._standing) - set(unfinished):
            del self._standing[stem]
        if unfinished:
            self._remove_abandoned(pool, unfinished, self._standing)
        self._close_sources(pool)
        if self.most_bytes is not None:
            clear_images(pool, self.most_bytes)

    def _present(
        self, pool: Pool, located: Located, checksum: str | None, pull: PullPolicy
    ) -> InStock | None:
        shelf = Shelf(pool.names())
        if checksum is not None:
            return shelf.find(key_of(checksum))
        return None if pull is PullPolicy.ALWAYS else shelf.from_source(located.identity)

    def _brought(
        self, pool: Pool, located: Located, checksum: str | None, progress: Progress
    ) -> InStock:
        place = _readable(pool, located.place)
        bringing = _Bringing(pool, progress, self.clock)
        with open_image(place, checksum, self.workshop.limits, bringing.beat) as fetch:
            key = key_of(checksum or f"{located.identity} {fetch.version}")
            found = Shelf(pool.names()).find(key) or self._elsewhere(pool, key, progress)
            if found is not None:
                return found
            made = bringing.bring(key, fetch, self.workshop.scratch)
        if self.most_bytes is not None:
            clear_images(pool, self.most_bytes, frozenset({made.volume}))
        return made

    def _elsewhere(self, pool: Pool, key: str, progress: Progress) -> InStock | None:
        """Wait for another process that brings the image; clear away what nobody brings."""
        seen: dict[str, tuple[int, float]] = {}
        while unfinished := Shelf(pool.names()).unfinished(key):
            progress.elsewhere = True
            self._remove_abandoned(pool, unfinished, seen)
            self.sleep(LOOK_SECONDS)
            if found := Shelf(pool.names()).find(key):
                return found
        progress.elsewhere = False
        return None

    def _remove_abandoned(
        self, pool: Pool, unfinished: dict[str, list[str]], seen: dict[str, tuple[int, float]]
    ) -> None:
        for stem, names in unfinished.items():
            volumes = [volume for name in names if (volume := pool.find(name))]
            size = sum(int(volume.info()[2]) for volume in volumes)
            before, since = seen.get(stem, (-1, 0.0))
            if size != before:
                seen[stem] = (size, self.clock())
            elif self.clock() - since > ABANDONED_SECONDS:
                for name in names:
                    pool.remove(name)

    def _close_sources(self, pool: Pool) -> None:
        """Close directories that are open for longer than it takes to open a file in them."""
        now = self.clock()
        self._sources = {
            name: self._sources.get(name, now) for name in open_sources(pool.connection)
        }
        for name, since in self._sources.items():
            if now - since > ABANDONED_SECONDS:
                close_source(pool.connection, name)

    def _touch(self, pool: Pool, image: InStock) -> None:
        """Note on the host that an image was used; not more often than it matters."""
        last = self._touched.get(image.volume)
        if last is None or self.clock() - last > TOUCH_SECONDS:
            pool.fill(image.mark, 1, [b"\n"])
            self._touched[image.volume] = self.clock()


class _Bringing:
    """One image on its way to a host, and the claim that shows it."""

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


def _readable(pool: Pool, place: Bytes | HostFile) -> Bytes:
    return HostFileBytes(pool, place) if isinstance(place, HostFile) else place


def _remember(pool: Pool, located: Located, image: InStock) -> None:
    """Note from where an image came; what came from there before is forgotten first."""
    name, beginning = alias(located.identity, image.key), alias(located.identity)
    names = pool.names()
    for old in names:
        if old.startswith(beginning) and old != name:
            pool.remove(old)
    if name not in names:
        pool.fill(name, 1, [b"\n"])


def _own_checksum(located: Located) -> str | None:
    """Return the checksum of an image that comes with us."""
    if not isinstance(located.place, FileBytes):
        return None
    found = located.place.path.stat()
    return f"sha256:{_digest(located.place.path, found.st_size, found.st_mtime_ns)}"


@lru_cache(maxsize=8)
def _digest(path: Path, _size: int, _modified_ns: int) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
