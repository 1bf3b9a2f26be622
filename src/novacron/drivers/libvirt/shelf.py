"""What the names of a pool's volumes say about images.

An image is complete when a small volume beside it says so; it is made last and removed first. One
without it is being brought by somebody, who claims that with a third volume which grows as long
as he lives, or was left by somebody who died. A fourth kind remembers from where an image came.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from secrets import token_hex

__all__ = [
    "DOWNLOAD",
    "InStock",
    "Shelf",
    "alias",
    "claim",
    "key_of",
    "lot_of",
    "mark",
    "new_stem",
    "taken",
]

PREFIX = "image-"
ALIAS = "image-of-"
COMPLETE = ".ok"
CLAIM = ".claim"
TAKEN = ".taken-"
# What is still to be converted; no image is called that.
DOWNLOAD = ".download"
KEY_LENGTH = 20


@dataclass(frozen=True, slots=True)
class InStock:
    """A complete image on a host."""

    volume: str
    format: str
    virtual_bytes: int

    @property
    def mark(self) -> str:
        """The volume that says so."""
        return mark(self.volume, self.virtual_bytes)

    @property
    def key(self) -> str:
        """What the image is found by."""
        return self.volume.removeprefix(PREFIX).partition("-")[0]


def key_of(version: str) -> str:
    """Return what an image of this version is found by."""
    return hashlib.sha256(version.encode()).hexdigest()[:KEY_LENGTH]


def lot_of(key: str, identity: str) -> str:
    """Return what is the same for all who bring an image from the same place.

    Nobody waits for, or goes on with, what comes from elsewhere: any server can promise an image.
    Of what two brought thus the one that was whole first stays.
    """
    return f"{key}-{key_of(identity)}"


def new_stem(lot: str) -> str:
    """Return what all volumes of a new copy of an image begin with."""
    return f"{PREFIX}{lot}-{token_hex(4)}"


def mark(volume: str, virtual_bytes: int) -> str:
    """Return the volume that says that another is complete."""
    return f"{volume}.{virtual_bytes}{COMPLETE}"


def claim(stem: str) -> str:
    """Return the volume that grows while somebody brings an image."""
    return f"{stem}{CLAIM}"


def taken(stem: str, time: str) -> str:
    """Return the volume that says who goes on with what was left."""
    return f"{stem}{TAKEN}{time}"


def alias(identity: str, key: str = "") -> str:
    """Return the volume that remembers which image came from somewhere."""
    return f"{ALIAS}{key_of(identity)}.{key}"


@dataclass(frozen=True, slots=True)
class Shelf:
    """The volumes of a pool as they were a moment ago."""

    names: frozenset[str]

    def images(self) -> Iterator[InStock]:
        """Return all complete images."""
        for name in sorted(self.names):
            if name.startswith(PREFIX) and name.endswith(COMPLETE):
                volume, size, _ = name.rsplit(".", 2)
                if volume in self.names and size.isdigit():
                    yield InStock(volume, volume.rpartition(".")[2], int(size))

    def find(self, key: str) -> InStock | None:
        """Return a complete image."""
        return next((each for each in self.images() if each.key == key), None)

    def from_source(self, identity: str) -> InStock | None:
        """Return the image that last came from somewhere."""
        beginning = alias(identity)
        keys = (each.removeprefix(beginning) for each in self.names if each.startswith(beginning))
        return next((found for key in keys if (found := self.find(key))), None)

    def unfinished(self, lot: str = "") -> dict[str, list[str]]:
        """Return what is being brought, or was left: volumes by what they begin with."""
        whole = {each.volume.partition(".")[0] for each in self.images()}
        found: dict[str, list[str]] = {}
        for name in sorted(self.names):
            stem = name.partition(".")[0]
            ours = name.startswith(f"{PREFIX}{lot}") and not name.startswith(ALIAS)
            if ours and stem not in whole:
                found.setdefault(stem, []).append(name)
        return found

    def stale(self) -> Iterator[str]:
        """Return volumes that say nothing any more: claims on what is complete, lost memories."""
        whole = {each.volume.partition(".")[0] for each in self.images()}
        keys = {each.key for each in self.images()}
        for name in sorted(self.names):
            if name.startswith(ALIAS):
                if name.rpartition(".")[2] not in keys:
                    yield name
            elif _about_work(name) and name.partition(".")[0] in whole:
                yield name


def _about_work(name: str) -> bool:
    return name.startswith(PREFIX) and (name.endswith((CLAIM, DOWNLOAD)) or TAKEN in name)
