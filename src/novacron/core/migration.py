"""The port through which machines are moved from one host to another.

The two hosts know nothing of each other. What one has to know of the other is handed to it by
whoever reconciles the machine, in values that only drivers of the same kind can read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from novacron.core.errors import Rejected
from novacron.core.machine import MachinePlan, MachineRef
from novacron.core.move import MovePolicy, MoveProgress

__all__ = [
    "CPU_INCOMPATIBLE",
    "DEVICES_STAY",
    "DISKS_OUT_OF_REACH",
    "DISK_LOST",
    "HAS_DEVICES",
    "HAS_SNAPSHOTS",
    "HOST_BACK",
    "HOST_LOST",
    "LIVE_FORBIDDEN",
    "NOT_ALLOWED",
    "NO_CERTIFICATES",
    "NO_OTHER_HOST",
    "VOLUMES_AWAIT_RESTART",
    "Destination",
    "LiveMigration",
    "Luggage",
    "require_encryption",
    "uncertified",
]

NO_CERTIFICATES = "NoCertificates"
NO_OTHER_HOST = "NoOtherHost"
CPU_INCOMPATIBLE = "CpuIncompatible"
HAS_DEVICES = "HasDevices"
HAS_SNAPSHOTS = "HasSnapshots"
DISKS_OUT_OF_REACH = "DisksOutOfReach"
DISK_LOST = "DiskLost"
VOLUMES_AWAIT_RESTART = "VolumesAwaitRestart"
HOST_BACK = "HostBack"
HOST_LOST = "HostLost"
NOT_ALLOWED = "NotAllowed"
LIVE_FORBIDDEN = "spec.migrationPolicy.allowLiveMigration is false"
DEVICES_STAY = (
    "it has devices of its host, so it has to be stopped to get others elsewhere: allow that with "
    "--stop-allowed of novacron vm migrate, or of novacron host drain"
)


def uncertified(who_has: str) -> str:
    """Return what is to be said of a machine that may not be sent in the clear.

    ``who_has`` ends in its verb: "host a has no", "no other host has".
    """
    return (
        f"it may travel only encrypted, and {who_has} certificates for that: give each host some "
        "and say so in spec.libvirt.migration.tls of its Host, or set "
        "spec.migrationPolicy.encrypted to false"
    )


def require_encryption(policy: MovePolicy, able: Mapping[str, bool]) -> None:
    """Refuse to send a machine in the clear that is to travel encrypted."""
    for host, has_certificates in able.items():
        if policy.encrypted and not has_certificates:
            raise Rejected(uncertified(f"host {host} has no"), reason=NO_CERTIFICATES)


@dataclass(frozen=True, slots=True)
class Luggage:
    """What a machine has on the host that it is on."""

    contents: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a host takes a machine in, for the one that sends it; ``move`` is the order's id."""

    host: str
    details: Mapping[str, object] = field(default_factory=dict)
    move: str = ""


@runtime_checkable
class LiveMigration(Protocol):
    """A driver whose machines can move to another host of the same kind, running or not.

    The first group is asked of the host that a machine leaves, the second of the one it comes to.
    Each call may be repeated, also by a process that knows nothing of the earlier ones.
    """

    async def pack(self, ref: MachineRef) -> Luggage:
        """Tell what the machine has that must be where it goes."""

    async def send(self, ref: MachineRef, to: Destination, policy: MovePolicy) -> None:
        """Begin to send the machine, running as it runs or off as it is off.

        What went wrong with an order that was accepted is raised when it is given again.
        """

    async def movement(self, ref: MachineRef) -> MoveProgress | None:
        """Tell how far a machine is that is being sent; None where none is."""

    async def cancel_move(self, ref: MachineRef) -> None:
        """Have the machine stay with all it has; to be repeated until it is no longer being sent.

        One that is about to be sent may not be stopped yet, and one that is there has gone.
        """

    async def clear_out(self, ref: MachineRef, kept: Luggage, *, was_home: bool) -> None:
        """Remove what is left of a machine that is on another host, where it has ``kept``.

        Disks in a storage that both hosts reach stay: they are the same. Where the machine never
        was at home only such disks go as a move left: others of the same name are somebody's.
        """

    async def welcome(self, plan: MachinePlan, luggage: Luggage) -> Destination:
        """Make ready for the machine; Busy while that takes time."""

    async def arrived(self, plan: MachinePlan, luggage: Luggage | None) -> MoveProgress:
        """Make a machine that has come one of the host's own, set up as the plan says.

        Returns what it took, where that is known. One that was sent while it was off is off then.
        """

    async def out_of_reach(self, plan: MachinePlan) -> str | None:
        """Return what of the disks of a machine that is not here is not within reach, if any is.

        None may be made anew under the same name: whoever reaches the others has the data.
        """
