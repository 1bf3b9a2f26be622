"""Whether a simulated host takes what it is asked for, and the sentence when it does not."""

from collections.abc import Sequence

from novacron.core.errors import OutOfCapacity, Rejected
from novacron.core.machine import Resources
from novacron.drivers.simulation.host import SimulatedHost
from novacron.drivers.simulation.store import MachineRow

__all__ = [
    "require_addresses",
    "require_growth",
    "require_room",
    "require_sense",
    "require_whole_disk",
]

# The last address of the network is for broadcasts.
LAST_SLOT = 65534


def require_sense(size: Resources) -> None:
    """Refuse a machine that no host could run."""
    if size.vcpus < 1 or size.memory_mib < 1 or size.disk_mib < 0:
        raise Rejected(
            f"a machine of {size.vcpus} CPUs, {size.memory_mib} MiB of memory and "
            f"{size.disk_mib} MiB of disk cannot be made"
        )


def require_room(host: SimulatedHost, held: Resources, size: Resources) -> None:
    """Refuse a new machine that does not fit into what the host has free."""
    _require(host, held, size, "are asked for")


def require_growth(host: SimulatedHost, held: Resources, row: MachineRow, size: Resources) -> None:
    """Refuse growth that the host has no room for; what does not grow is not checked."""
    growth = Resources(
        max(size.vcpus - row.vcpus, 0),
        max(size.memory_mib - row.memory_mib, 0),
        max(size.disk_mib - row.disk_mib, 0),
    )
    _require(host, held, growth, "more are asked for")


def _require(host: SimulatedHost, held: Resources, asked: Resources, words: str) -> None:
    room = host.room
    for what, total, taken, amount in (
        ("CPUs", room.vcpus, held.vcpus, asked.vcpus),
        ("MiB of memory", room.memory_mib, held.memory_mib, asked.memory_mib),
        ("MiB of disk", room.disk_mib, held.disk_mib, asked.disk_mib),
    ):
        # A host that was made smaller has less than nothing free; people read that as none.
        free = max(total - taken, 0)
        if amount > free:
            raise OutOfCapacity(
                f"host {host.name} has {free} of {total} {what} free, {amount} {words}"
            )


def require_addresses(host: SimulatedHost, slots: Sequence[int]) -> None:
    """Refuse a machine whose addresses would lie beyond the host's network."""
    if slots and slots[-1] > LAST_SLOT:
        raise OutOfCapacity(f"host {host.name} has no address free")


def require_whole_disk(row: MachineRow, size: Resources) -> None:
    """Refuse to cut off a part of a disk: whatever the guest keeps there would be lost."""
    if size.disk_mib < row.disk_mib:
        raise Rejected(
            f"the disk of machine {row.name} has {row.disk_mib} MiB and cannot shrink "
            f"to {size.disk_mib} MiB"
        )
