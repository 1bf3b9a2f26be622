"""Which devices of a host may be handed to machines: a pure choice.

Only those that the host itself does not use: a device is offered when its administrator gave it
to VFIO or no driver has it, and the same is so for all that the host's IOMMU cannot tell from it.
Mediated devices are made to be handed over.
"""

from collections.abc import Iterable, Iterator, Mapping

from novacron.core.devices import HostDevice
from novacron.drivers.libvirt.nodedev import BRIDGE, MediatedDevice, PciDevice, plain_name

__all__ = ["offered"]

VFIO = "vfio"
# Of devices that can be handed over only together, the one that people ask for.
RANK = {"gpu": 0, "accelerator": 1, "nic": 2, "nvme": 3, "storage": 4}


def offered(
    found: Mapping[str, PciDevice], shares: Iterable[MediatedDevice]
) -> tuple[HostDevice, ...]:
    """Return what machines can be given of a host's devices, which have libvirt's names."""
    devices = [*_whole(found), *_shares(found, shares)]
    return tuple(sorted(devices, key=lambda device: device.address))


def _whole(found: Mapping[str, PciDevice]) -> list[HostDevice]:
    """Return one device for each group: the members of a group go to one machine only."""
    by_address = {device.address: device for device in found.values()}
    chosen: dict[tuple[str, ...], PciDevice] = {}
    for device in sorted(found.values(), key=lambda each: (RANK.get(each.kind, 9), each.address)):
        members = [by_address[address] for address in device.group if address in by_address]
        if device.kind != BRIDGE and members and all(map(_is_free, members)):
            chosen.setdefault(device.group, device)
    return [
        HostDevice(each.address, each.kind, each.vendor, each.model, each.numa_node)
        for each in chosen.values()
    ]


def _is_free(device: PciDevice) -> bool:
    return device.kind == BRIDGE or not device.driver or VFIO in device.driver


def _shares(
    found: Mapping[str, PciDevice], shares: Iterable[MediatedDevice]
) -> Iterator[HostDevice]:
    for share in shares:
        parent = found.get(share.parent)
        name = parent.mediated_types.get(share.type) if parent else None
        yield HostDevice(
            address=share.uuid,
            kind="mdev",
            vendor=parent.vendor if parent else "",
            model=plain_name(name or share.type),
            numa_node=parent.numa_node if parent else None,
        )
