"""Snapshots: what is asked for, what is there, and how a driver is asked.

A snapshot is known by its name, which is its machine's own. Names of scheduled ones tell their
moment, so a run that was made is never made again, whoever died in between.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from novacron.core.conditions import Condition
from novacron.core.schedule import Schedule

if TYPE_CHECKING:
    # A machine has wishes about snapshots, so it cannot be needed to say what those are.
    from novacron.core.driver import Accepted
    from novacron.core.machine import MachineRef

__all__ = [
    "NO_WISHES",
    "Kept",
    "RestoreOrder",
    "Restored",
    "Snapshot",
    "SnapshotOrder",
    "SnapshotPolicy",
    "SnapshotReport",
    "SnapshotWishes",
    "Snapshots",
    "is_scheduled",
    "scheduled_name",
    "surplus",
]

SCHEDULED = re.compile(r"snapshot-\d{8}-\d{6}")


@dataclass(frozen=True, slots=True)
class SnapshotOrder:
    """A snapshot to take; of memory too, where a guest runs."""

    name: str
    memory: bool = False


@dataclass(frozen=True, slots=True)
class RestoreOrder:
    """A snapshot to go back to; another ``request`` asks for it once more.

    ``elsewhere`` are volumes that the machine once had, by their ids, with the name of the machine
    on whatever host that has each now.
    """

    snapshot: str
    request: str
    elsewhere: Mapping[str, str] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class SnapshotPolicy:
    """When snapshots are taken by themselves, how, and how many of those are kept."""

    schedule: Schedule
    retention: int
    memory: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A whole snapshot at a hypervisor.

    ``size_bytes`` is what it holds: the disks' own data when it was taken, and the memory.
    ``quiesced`` says whether the guest's file systems were at rest. ``restored`` is the request by
    which the machine last went back to it.
    """

    name: str
    created: datetime
    size_bytes: int | None = None
    memory: bool = False
    quiesced: bool = False
    restored: str = ""


@dataclass(frozen=True, slots=True)
class Kept:
    """A snapshot as it is on record; ``lost`` is one that went away without our doing."""

    name: str
    created: datetime | None = None
    size: str | None = None
    memory: bool = False
    quiesced: bool = False
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Restored:
    """What became of a restore; ``reason`` is the word for why nothing did."""

    snapshot: str
    request: str
    succeeded: bool
    message: str = ""
    at: datetime | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SnapshotWishes:
    """All that a machine's owner wants about snapshots, with what is on record.

    ``since`` is the run up to which ``followed``, a schedule, was followed so far.
    """

    policy: SnapshotPolicy | None = None
    wanted: tuple[SnapshotOrder, ...] = ()
    unwanted: frozenset[str] = frozenset()
    restore: RestoreOrder | None = None
    protect: bool = False
    kept: tuple[Kept, ...] = ()
    restored: Restored | None = None
    followed: str = ""
    since: datetime | None = None
    next_run: datetime | None = None

    @property
    def any(self) -> bool:
        """Say whether there is anything to do, or to tell."""
        return bool(self.policy or self.wanted or self.unwanted or self.kept or self.followed)

    @property
    def protected(self) -> frozenset[str]:
        """Return which snapshots on record the machine's deletion has to wait for.

        Their host need not tell of them: amid a move they are put away, and a disk may be away.
        """
        names = {each.name for each in self.kept if self.protect and not each.lost}
        return frozenset(names) - self.unwanted

    @property
    def to_restore(self) -> RestoreOrder | None:
        """Return the restore that was asked for and about which nothing is on record yet."""
        done = self.restored.request if self.restored else None
        return None if self.restore is None or self.restore.request == done else self.restore


NO_WISHES = SnapshotWishes()


@dataclass(frozen=True, slots=True)
class SnapshotReport:
    """What is to be put on record after a round."""

    kept: tuple[Kept, ...]
    claim: Condition | None = None
    restored: Restored | None = None
    followed: str = ""
    since: datetime | None = None
    next_run: datetime | None = None


@runtime_checkable
class Snapshots(Protocol):
    """A driver that takes snapshots of its machines' disks and memory.

    What went wrong with an order that was accepted before is raised by the next one.
    """

    async def snapshots(self, ref: "MachineRef") -> Sequence[Snapshot]:
        """Tell of every whole snapshot of a machine that we took."""

    async def take_snapshot(self, ref: "MachineRef", order: SnapshotOrder) -> "Accepted":
        """Take one, of a machine that runs or not; the same name twice makes one."""

    async def restore_snapshot(self, ref: "MachineRef", order: RestoreOrder) -> "Accepted":
        """Bring disks and memory back to what they were; off without memory, else running.

        The same request twice goes back once: the snapshot keeps which it was last.
        """

    async def remove_snapshot(self, ref: "MachineRef", name: str) -> "Accepted":
        """Remove one. An absent one is success."""


def scheduled_name(run: datetime) -> str:
    """Return the name of the snapshot of a scheduled run."""
    return f"snapshot-{run.astimezone(UTC):%Y%m%d-%H%M%S}"


def is_scheduled(name: str) -> bool:
    """Say whether a snapshot was taken by schedule; nobody else's may be called so."""
    return SCHEDULED.fullmatch(name) is not None


def surplus(names: Sequence[str], retention: int) -> list[str]:
    """Return the scheduled snapshots that are too many, the oldest first."""
    scheduled = sorted(name for name in names if is_scheduled(name))
    return scheduled[: max(len(scheduled) - retention, 0)]
