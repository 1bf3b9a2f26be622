"""An amount of what hosts have and machines take."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Resources", "Share"]


class Share(NamedTuple):
    """What one volume takes of a storage class; its id tells it from all others.

    A volume that several machines have is one share, and takes its room once.
    """

    storage_class: str
    volume: str
    mib: int


Shares = tuple[Share, ...]


@dataclass(frozen=True, slots=True)
class Resources:
    """An amount of what hosts have and machines take.

    ``disk_mib`` is of the host's own storage, ``shares`` are of its storage classes, in order.
    """

    vcpus: int = 0
    memory_mib: int = 0
    disk_mib: int = 0
    shares: Shares = ()

    def __add__(self, other: "Resources") -> "Resources":
        return Resources(
            self.vcpus + other.vcpus,
            self.memory_mib + other.memory_mib,
            self.disk_mib + other.disk_mib,
            _joined(self.shares, other.shares, int.__add__),
        )

    def __sub__(self, other: "Resources") -> "Resources":
        return Resources(
            self.vcpus - other.vcpus,
            self.memory_mib - other.memory_mib,
            self.disk_mib - other.disk_mib,
            _joined(self.shares, other.shares, int.__sub__),
        )

    def covering(self, other: "Resources") -> "Resources":
        """Return the least amount that is enough for either."""
        return Resources(
            max(self.vcpus, other.vcpus),
            max(self.memory_mib, other.memory_mib),
            max(self.disk_mib, other.disk_mib),
            _joined(self.shares, other.shares, max),
        )

    def fits(self, room: "Resources") -> bool:
        """Say whether this amount can be taken from the room."""
        return (
            self.vcpus <= room.vcpus
            and self.memory_mib <= room.memory_mib
            and self.disk_mib <= room.disk_mib
            and self.shares_fit(room.shares)
        )

    def shares_fit(self, others: Shares) -> bool:
        """Say whether each share is among these, and no larger there."""
        return self.shares == others or all(
            share.mib <= mib
            for share, mib in zip(self.shares, _sizes(self.shares, others), strict=True)
        )


def _sizes(shares: Shares, others: Shares) -> Iterable[int]:
    found = {share[:2]: share.mib for share in others}
    return [found.get(share[:2], 0) for share in shares]


def _joined(ones: Shares, others: Shares, by: Callable[[int, int], int]) -> Shares:
    """Return all shares of both, in order, each as large as both together say."""
    if not ones and not others:
        return ()  # as with nearly all machines
    keys = sorted({share[:2] for share in (*ones, *others)})
    mine, theirs = ({share[:2]: share.mib for share in each} for each in (ones, others))
    sizes = ((key, by(mine.get(key, 0), theirs.get(key, 0))) for key in keys)
    return tuple(Share(*key, mib) for key, mib in sizes if mib)
