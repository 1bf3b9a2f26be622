"""The images a host has in stock, so that many machines share one.

An image is complete when a small volume beside it says so; it is made last. One without it is
being brought by somebody, or was left by somebody who died: whoever brings one makes progress or
gives up, so one that stands still for long enough is nobody's.
"""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from secrets import token_hex

from novacron.core.errors import Busy
from novacron.drivers.libvirt.pool import Pool
from novacron.images import Fetch, Images, open_image

__all__ = ["InStock", "Stock"]

PREFIX = "image-"
COMPLETE = ".ok"
# Twice as long as a silent source is waited for.
ABANDONED_SECONDS = 20.0
LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class InStock:
    """A complete image on a host."""

    volume: str
    format: str
    virtual_bytes: int


@dataclass(frozen=True, slots=True)
class Stock:
    """Finds images in a pool, and brings those that are missing. Blocks."""

    builtin: Images
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def ensure(self, pool: Pool, source: str, checksum: str | None) -> InStock:
        """Return the image, brought here if need be."""
        if checksum and (found := _complete(pool, _key(checksum))):
            return found
        with open_image(source, checksum, self.builtin) as fetch:
            key = _key(checksum or self._version(fetch))
            return _complete(pool, key) or self._elsewhere(pool, key) or _bring(pool, key, fetch)

    def _version(self, fetch: Fetch) -> str:
        """Return what changes when the image behind an address does."""
        scheme, _, name = fetch.source.partition("://")
        if scheme == "builtin" and (path := self.builtin(name)):
            found = path.stat()
            return _digest(path, found.st_size, found.st_mtime_ns)
        return f"{fetch.source} {fetch.version}"

    def _elsewhere(self, pool: Pool, key: str) -> InStock | None:
        """Wait for another process that brings the image; clear away what nobody brings."""
        seen: dict[str, tuple[int, float]] = {}
        while partial := _partial(pool, key):
            for name in partial:
                volume = pool.find(name)
                size = volume.info()[2] if volume else 0
                before, since = seen.get(name, (-1, 0.0))
                if size != before:
                    seen[name] = (size, self.clock())
                elif self.clock() - since > ABANDONED_SECONDS:
                    pool.remove(name)
            self.sleep(LOOK_SECONDS)
            if found := _complete(pool, key):
                return found
        return None


def _bring(pool: Pool, key: str, fetch: Fetch) -> InStock:
    name = f"{PREFIX}{key}-{token_hex(4)}.{fetch.inspected.format}"
    pool.fill(name, fetch.length or 0, fetch.chunks())
    size = fetch.inspected.virtual_bytes or fetch.done
    if pool.find(name) is None:
        raise Busy("somebody removed the image while it was brought", reason="ImageIncomplete")
    pool.fill(f"{name}.{size}{COMPLETE}", 1, [b"\n"])
    return InStock(name, fetch.inspected.format, size)


def _complete(pool: Pool, key: str) -> InStock | None:
    names = pool.names()
    for mark in sorted(names):
        if mark.startswith(f"{PREFIX}{key}-") and mark.endswith(COMPLETE):
            name, size, _ = mark.rsplit(".", 2)
            if name in names:
                return InStock(name, name.rpartition(".")[2], int(size))
    return None


def _partial(pool: Pool, key: str) -> list[str]:
    names = pool.names()
    marked = {mark.rsplit(".", 2)[0] for mark in names if mark.endswith(COMPLETE)}
    return [
        name
        for name in names
        if name.startswith(f"{PREFIX}{key}-") and not name.endswith(COMPLETE) and name not in marked
    ]


def _key(version: str) -> str:
    return hashlib.sha256(version.encode()).hexdigest()[:20]


@lru_cache(maxsize=8)
def _digest(path: Path, _size: int, _modified_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
