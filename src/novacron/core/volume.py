"""A volume: a disk beside a machine's first one, with data that outlives mistakes.

Only two things ever remove one: its machine's deletion where its policy says Delete, and somebody
who deletes this very volume by name. One that is taken out of a machine's list is detached.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import IntEnum, StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from novacron.core.errors import OutOfCapacity, Rejected

if TYPE_CHECKING:
    from novacron.core.machine import MachineRef

__all__ = [
    "APART",
    "COMMON",
    "IN_USE_AGAIN",
    "Access",
    "Attachment",
    "Hold",
    "KeptVolume",
    "Reclaim",
    "SeenVolume",
    "StorageClass",
    "Volume",
    "VolumeKeeping",
    "are_as_planned",
    "of_the_host",
    "require_offered",
    "volume_id",
]

# Whoever has a volume that another machine asks for may let go of it at any time.
IN_USE_AGAIN = timedelta(seconds=10)


class Access(StrEnum):
    """Who may use a volume at the same time; the words are Kubernetes' own."""

    ONCE = "ReadWriteOnce"
    READ_ONLY = "ReadOnlyMany"
    MANY = "ReadWriteMany"
    ONE_POD = "ReadWriteOncePod"


# Of these several machines may have one, so that a copy would be another volume.
COMMON = frozenset({Access.READ_ONLY, Access.MANY})


class Reclaim(StrEnum):
    """What becomes of a volume when its machine is deleted."""

    DELETE = "Delete"
    RETAIN = "Retain"


class Attachment(StrEnum):
    """How a volume is joined to its machine now."""

    PENDING = "Pending"
    ATTACHING = "Attaching"
    ATTACHED = "Attached"
    GROWING = "Growing"
    AWAITS_RESTART = "AwaitsRestart"
    DETACHING = "Detaching"
    DETACHED = "Detached"


JOINED = frozenset(
    {
        Attachment.ATTACHING,
        Attachment.ATTACHED,
        Attachment.GROWING,
        Attachment.AWAITS_RESTART,
    }
)
APART = frozenset({Attachment.DETACHED, Attachment.DETACHING})


class Hold(IntEnum):
    """How much a machine has to do with a volume, as far as it is on record; the most counts."""

    HAD = 0
    ASKS = 1
    READS = 2
    WRITES = 3


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume as it was asked for.

    ``storage_class`` of None is the host's own storage. ``existing`` is the id of a volume that
    was kept; without it, one is made. ``access`` of None is what its storage does best, and
    ``block`` whether storage gives a device or a file system, where that differs. ``bus`` is how
    the guest sees it.
    """

    name: str
    size_mib: int
    storage_class: str | None = None
    access: Access | None = Access.ONCE
    reclaim: Reclaim = Reclaim.RETAIN
    existing: str | None = None
    block: bool | None = None
    bus: str | None = None

    def id_for(self, machine: str, uid: str) -> str:
        """Return what it is called within the namespace of the machine that asks for it."""
        return self.existing or volume_id(machine, self.name, uid)


@dataclass(frozen=True, slots=True)
class SeenVolume:
    """A volume as it is: ``id`` is what it is called within its namespace, also when kept.

    ``size_mib`` is how large it is to be, ``has_mib`` how large it is while it grows, and ``note``
    what is left to do about it. ``device`` is what the guest sees it as.
    """

    name: str
    size_mib: int
    attachment: Attachment
    id: str
    storage_class: str | None = None
    has_mib: int | None = None
    note: str = ""
    access: Access | None = None
    block: bool | None = None
    bus: str | None = None
    device: str | None = None


@dataclass(frozen=True, slots=True)
class KeptVolume:
    """A volume whose machine is gone, as far as its host knows.

    ``storage`` is what the place is known by where it is, if other hosts may see it too: whether
    one of them has the machine is for those to find out who know all machines.
    """

    namespace: str
    id: str
    size_mib: int
    storage_class: str | None = None
    storage: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class StorageClass:
    """A kind of storage that a host offers; shared means that other hosts see the same one.

    A size of None is as much as anybody asks for.
    """

    name: str
    shared: bool = False
    size_mib: int | None = None


@runtime_checkable
class VolumeKeeping(Protocol):
    """A driver whose volumes stay when their machine goes, until somebody wants them gone."""

    async def kept_volumes(self, host: str) -> Sequence[KeptVolume]:
        """Tell of every volume whose machine is gone."""

    async def reclaim(self, ref: "MachineRef", volumes: "Iterable[Volume]") -> None:
        """Delete volumes that were made for a machine; it is gone by now.

        One that another machine has meanwhile is that one's, and stays.
        """

    async def delete_volume(self, host: str, namespace: str, volume: str) -> None:
        """Delete one volume by its id; Rejected when a machine has it, or when there is none."""


def volume_id(machine: str, volume: str, uid: str) -> str:
    """Return what a volume is called within its namespace: readable, and no other one's."""
    return f"{machine}.{volume}-{sha256(uid.encode()).hexdigest()[:8]}"


def require_offered(
    volume: Volume,
    *,
    shared: bool | None,
    host: str,
    field: str,
    refusal: type[OutOfCapacity | Rejected],
) -> None:
    """Refuse a volume that a host cannot hold for want of its storage class.

    ``shared`` says what the class is on that host, None that there is no such class; ``field`` is
    where the host's classes are declared.
    """
    if volume.storage_class is not None and shared is None:
        raise refusal(
            f"host {host} has no storage class {volume.storage_class}, which volume {volume.name} "
            f"asks for: add it to {field} of the Host",
            reason="StorageClassUnknown",
        )
    if volume.access is Access.MANY and not shared:
        raise refusal(
            f"volume {volume.name} asks for ReadWriteMany, which needs a storage class that is "
            f"shared: true in {field} of Host {host}",
            reason="StorageNotShared",
        )


def of_the_host(volumes: Iterable[Volume]) -> int:
    """Return how many MiB of the host's own disk space volumes take."""
    return sum(volume.size_mib for volume in volumes if volume.storage_class is None)


def are_as_planned(seen: Iterable[SeenVolume], planned: Iterable[Volume]) -> bool:
    """Say whether a machine is set to have the volumes that were asked for, and no others."""
    has = {
        volume.name: (volume.size_mib, volume.attachment in JOINED)
        for volume in seen
        if volume.attachment not in APART
    }
    return has == {volume.name: (volume.size_mib, True) for volume in planned}
