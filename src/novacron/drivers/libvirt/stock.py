"""The images a host has in stock, so that many machines share one. Blocks.

Finds them, brings those that are missing, and keeps order among them. Whoever brings one makes
progress and shows it, or gives up, so what stands still for long enough is nobody's.
"""

import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from hashlib import file_digest
from pathlib import Path
from typing import NamedTuple

from novacron.core.errors import Busy, Rejected
from novacron.core.image import PullPolicy
from novacron.drivers.libvirt.bringing import Bringing
from novacron.drivers.libvirt.clearance import clear_images, taken_bytes
from novacron.drivers.libvirt.host_file import HostFileBytes, close_source, open_sources
from novacron.drivers.libvirt.partial import Partial, Record, read_record, take_over
from novacron.drivers.libvirt.pool import Pool
from novacron.drivers.libvirt.progress import Progress
from novacron.drivers.libvirt.shelf import InStock, Shelf, alias, key_of, lot_of
from novacron.images import (
    Bytes,
    Fetch,
    FileBytes,
    HostFile,
    Limits,
    Located,
    checksum_from,
    open_image,
)

__all__ = ["InStock", "Stock", "Workshop"]

# Twice as long as a claim takes to grow, even while a source is silent.
ABANDONED_SECONDS = 20.0
# Longer than an operator takes to come back, and somebody to ask for the image again.
RESUMABLE_SECONDS = 900.0
LOOK_SECONDS = 1.0
TOUCH_SECONDS = 30.0
# Others may have brought something newer under the same name by then.
BELIEVED_SECONDS = 300.0
AGAIN = timedelta(seconds=20)
USUAL_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Workshop:
    """What images may be like, and where those in other formats are converted."""

    limits: Limits = USUAL_LIMITS
    scratch: Path | None = None


class _AtHand(NamedTuple):
    """An image that was here when it was looked for, and when it was last used."""

    image: InStock
    looked: float
    used: float

    def counts(self, now: float) -> bool:
        return now - self.used < TOUCH_SECONDS and now - self.looked < BELIEVED_SECONDS


@dataclass(slots=True)
class Stock:
    """Finds images in a pool, and brings those that are missing."""

    workshop: Workshop = Workshop()
    most_bytes: int | None = None
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    _at_hand: dict[str, _AtHand] = field(default_factory=dict)
    _touched: dict[str, float] = field(default_factory=dict)
    _remembered: dict[str, str] = field(default_factory=dict)
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
        found = found or self._brought(pool, located, checksum, pull, progress)
        self._touch(pool, found)
        # What was found by a checksum that anybody may name need not be what is there.
        if located.checksum is None or located.vouched:
            self._remember(pool, located, found)
        now = self.clock()
        self._at_hand[_version(located)] = _AtHand(found, looked=now, used=now)
        return found

    def at_hand(self, located: Located, pull: PullPolicy) -> InStock | None:
        """Return an image that was here a moment ago; whoever builds on it sees if it still is."""
        if pull is PullPolicy.ALWAYS:
            return None
        known = self._at_hand.get(_version(located))
        return known.image if known is not None and known.counts(self.clock()) else None

    def used(self, pool: Pool, image: InStock) -> None:
        """Note that a machine was made of an image that was at hand, which it thus still is."""
        self._touch(pool, image)
        for version, known in list(self._at_hand.items()):
            if known.image == image:
                self._at_hand[version] = known._replace(used=self.clock())

    def tidy(self, pool: Pool) -> None:
        """Remove what nobody will finish or ask for; called every now and then."""
        now = self.clock()
        for version, known in list(self._at_hand.items()):
            if not known.counts(now):
                del self._at_hand[version]
        shelf = Shelf(pool.names())
        for name in shelf.stale():
            pool.remove(name)
        unfinished = shelf.unfinished()
        for stem in set(self._standing) - set(unfinished):
            del self._standing[stem]
        if unfinished:
            self._remove_abandoned(pool, unfinished)
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
        self,
        pool: Pool,
        located: Located,
        checksum: str | None,
        pull: PullPolicy,
        progress: Progress,
    ) -> InStock:
        place = _readable(pool, located.place)
        bringing = Bringing(pool, progress, self.clock)
        with open_image(place, checksum, self.workshop.limits, bringing.beat) as fetch:
            version = fetch.version
            if not version and pull is PullPolicy.ALWAYS:
                version = secrets.token_hex(8)  # nobody tells whether it is what came before
            key = key_of(checksum or f"{located.identity} {version}")
            lot = lot_of(key, located.identity)
            found = Shelf(pool.names()).find(key) or self._elsewhere(
                pool, key, lot, fetch, progress
            )
            if isinstance(found, InStock):
                return found
            made = bringing.bring(lot, fetch, self.workshop.scratch, found)
            self._touched[made.volume] = self.clock()
        self._remember(pool, located, made)
        if self.most_bytes is not None:
            clear_images(pool, self.most_bytes, frozenset({made.volume}))
        return made

    def _elsewhere(
        self, pool: Pool, key: str, lot: str, fetch: Fetch, progress: Progress
    ) -> InStock | Partial | None:
        """Wait for another process that brings the image; go on with what nobody brings."""
        seen: dict[str, tuple[int, float]] = {}
        while unfinished := Shelf(pool.names()).unfinished(lot):
            for stem, names in unfinished.items():
                record = read_record(pool, stem)
                if not (record and record.left) and not self._stands(pool, stem, names, seen):
                    continue
                if record is not None and self._same(record, fetch):
                    with suppress(Busy):  # somebody else was faster: then he is waited for
                        return take_over(pool, stem, names)
                else:
                    _remove(pool, names)
            progress.elsewhere = True
            progress.require_wanted()
            self.sleep(LOOK_SECONDS)
            if found := Shelf(pool.names()).find(key):
                return found
        progress.elsewhere = False
        return None

    def _same(self, record: Record, fetch: Fetch) -> bool:
        """Say whether what was left is the beginning of what is there now."""
        same = (record.version, record.length) == (fetch.version, fetch.length)
        return same and fetch.resumable and bool(record.stored)

    def _stands(
        self,
        pool: Pool,
        stem: str,
        names: list[str],
        seen: dict[str, tuple[int, float]],
        patience: float = ABANDONED_SECONDS,
    ) -> bool:
        """Say whether nothing of an unfinished image grew for longer than anybody would take."""
        volumes = [volume for name in names if (volume := pool.find(name))]
        # Its length too: where a file system packs what is written, a claim takes up no more room.
        size = sum(int(part) for volume in volumes for part in volume.info()[1:])
        before, since = seen.get(stem, (-1, 0.0))
        if size != before:
            seen[stem] = (size, self.clock())
            return False
        return self.clock() - since > patience

    def _remove_abandoned(self, pool: Pool, unfinished: dict[str, list[str]]) -> None:
        """Remove what nobody goes on with; what could be gone on with is given more time."""
        full = self.most_bytes is not None and taken_bytes(pool, unfinished) > self.most_bytes
        for stem, names in unfinished.items():
            record = None if full else read_record(pool, stem)
            kept = record is not None and record.stored
            patience = RESUMABLE_SECONDS if kept else ABANDONED_SECONDS
            if self._stands(pool, stem, names, self._standing, patience):
                _remove(pool, names)

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
            pool.touch(image.mark)
            self._touched[image.volume] = self.clock()

    def _remember(self, pool: Pool, located: Located, image: InStock) -> None:
        """Note on the host from where an image came; what came from there before is forgotten."""
        identity = located.identity
        if located.comes_with_us or self._remembered.get(identity) == image.volume:
            return
        name, names = alias(identity, image.key), pool.names()
        for old in names:
            if old.startswith(alias(identity)) and old != name:
                pool.remove(old)
        if name not in names:
            pool.empty(name, 0, "raw")
        self._remembered[identity] = image.volume


def _remove(pool: Pool, names: list[str]) -> None:
    for name in names:
        pool.remove(name)


def _readable(pool: Pool, place: Bytes | HostFile) -> Bytes:
    return HostFileBytes(pool, place) if isinstance(place, HostFile) else place


def _version(located: Located) -> str:
    """Return what is the same only for the same image from the same place."""
    version = f"{located.identity} {located.checksum}"
    if isinstance(located.place, FileBytes):
        found = located.place.path.stat()
        version += f" {found.st_size} {found.st_mtime_ns}"
    return version


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
