"""Which of a machine's disks go only to hosts that see them."""

from collections.abc import Iterable
from typing import NamedTuple

from novacron.core.machine import Observed
from novacron.core.migration import DISKS_OUT_OF_REACH, HAS_SNAPSHOTS, VOLUMES_AWAIT_RESTART
from novacron.core.volume import APART, COMMON, Attachment, SeenVolume

__all__ = ["NOT_TIED", "Obstacle", "Tied", "ties_of"]

SNAPSHOTS_STAY = (
    "its snapshots are within disks that no other host sees which could take it, and come along "
    "only while it is off: let it be stopped (--stop-allowed), delete them first, or have hosts "
    "see one storage"
)
VOLUMES_STAY = (
    "it has a volume that its guest gets with a restart, that no other host sees which could take "
    "it, and that is not copied before: restart it first, take the volume off it, or let it be "
    "stopped (--stop-allowed)"
)
COMMON_STAYS = (
    "it has a volume that other machines may have too, that no other host sees which could take "
    "it, and that is never copied: have hosts see one storage, or take the volume off it"
)


class Obstacle(NamedTuple):
    """What keeps a machine where it is."""

    reason: str
    message: str


class Tied(NamedTuple):
    """What of a machine goes only to hosts that see it, by storage classes.

    Snapshots are ``within`` disks, and copies of those would not have them; the class without a
    name is the host's own. ``unplugged`` are those of volumes that the running guest does not have,
    ``common`` those of volumes that other machines may have too, of which a copy would be another.
    """

    within: frozenset[str] = frozenset()
    unplugged: frozenset[str] = frozenset()
    common: frozenset[str] = frozenset()

    @property
    def obstacles(self) -> tuple[tuple[frozenset[str], Obstacle], ...]:
        """Return what is said where no other host sees the places of these classes."""
        return (
            (self.within, Obstacle(HAS_SNAPSHOTS, SNAPSHOTS_STAY)),
            (self.unplugged, Obstacle(VOLUMES_AWAIT_RESTART, VOLUMES_STAY)),
            (self.common, Obstacle(DISKS_OUT_OF_REACH, COMMON_STAYS)),
        )


NOT_TIED = Tied()


def ties_of(seen: Observed | None) -> Tied:
    """Return what of a machine goes only where it is seen.

    Where it has snapshots, that is each disk, also one that was plugged in after all of them: with
    snapshots no disk is copied.
    """
    if seen is None:
        return NOT_TIED
    plugged = [each for each in seen.volumes if each.attachment not in APART]
    within = _classes(plugged) | {""} if seen.snapshots else frozenset[str]()
    awaiting = (each for each in seen.volumes if each.attachment is Attachment.AWAITS_RESTART)
    common = (each for each in plugged if each.access in COMMON)
    return Tied(within, _classes(awaiting), _classes(common))


def _classes(volumes: Iterable[SeenVolume]) -> frozenset[str]:
    return frozenset(each.storage_class or "" for each in volumes)
