"""What a machine starts from: classes of devices turned into a place for each device."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from novacron.families.viti.values import Resolved

__all__ = ["CDROM", "DISK", "NETWORK", "BootOrder", "boot_order"]

DISK, NETWORK, CDROM = "disk", "network", "cdrom"
# How many places a class takes, whether there is a device for each or not: one that comes or goes
# while the machine runs must not move the others.
ROOM = {DISK: 1, CDROM: 1, NETWORK: 32}


@dataclass(frozen=True, slots=True)
class BootOrder:
    """The place of each device, a low one tried first; devices that have none are not tried."""

    disks: Mapping[str, int]
    nics: Mapping[str, int]
    cdrom: int | None = None


def boot_order(machine: Resolved) -> BootOrder:
    """Return where each device stands: KubeVirt wants every number once, over disks and NICs."""
    starts, place = {}, 1
    for each in machine.boot_order or _usual(machine):
        starts[each] = place
        place += ROOM[each]
    disk, first_nic, cdrom = (starts.get(each) for each in (DISK, NETWORK, CDROM))
    inserted = machine.iso is not None and not machine.ejected
    return BootOrder(
        disks={each.name: disk for each in machine.size.disks if disk and each.boot},
        nics={nic.name: first_nic + at for at, nic in enumerate(machine.nics)} if first_nic else {},
        cdrom=cdrom if inserted else None,
    )


def _usual(machine: Resolved) -> Sequence[str]:
    """Return the order of a machine that says none.

    The disk comes before the medium, so that what was installed starts; an empty disk is passed
    over. The network is for machines that have nothing else.
    """
    empty = machine.image is None and machine.iso is None
    return (DISK, NETWORK) if empty else (DISK, CDROM)
