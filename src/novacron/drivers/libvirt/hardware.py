"""Asks libvirt for the devices of a host that may be handed to machines. Blocks."""

import libvirt

from novacron.core.devices import HostDevice
from novacron.drivers.libvirt.errors import code_of
from novacron.drivers.libvirt.handover import offered
from novacron.drivers.libvirt.nodedev import BRIDGE, MediatedDevice, PciDevice

__all__ = ["Hardware"]

PCI = libvirt.VIR_CONNECT_LIST_NODE_DEVICES_CAP_PCI_DEV
MEDIATED = libvirt.VIR_CONNECT_LIST_NODE_DEVICES_CAP_MDEV


class Hardware:
    """The devices of one host. Bridges are most of them and never change, so they are kept."""

    def __init__(self) -> None:
        self._known: dict[str, PciDevice] = {}

    def offered(self, connection: libvirt.virConnect) -> tuple[HostDevice, ...]:
        """Return what machines can be given."""
        pci, mediated = _listed(connection, PCI), _listed(connection, MEDIATED)
        seen = {name: self._described(name, device) for name, device in pci.items()}
        found = self._known = {name: each for name, each in seen.items() if each is not None}
        described = [xml for xml in map(_xml, mediated.values()) if xml is not None]
        shares = [MediatedDevice.parse(xml) for xml in described]
        return offered(found, [share for share in shares if share is not None])

    def _described(self, name: str, device: libvirt.virNodeDevice) -> PciDevice | None:
        known = self._known.get(name)
        if known is not None and known.kind == BRIDGE:
            return known
        xml = _xml(device)
        return None if xml is None else PciDevice.parse(xml)


def _listed(connection: libvirt.virConnect, flags: int) -> dict[str, libvirt.virNodeDevice]:
    try:
        return {device.name(): device for device in connection.listAllDevices(flags)}
    except libvirt.libvirtError as error:
        if code_of(error) == libvirt.VIR_ERR_NO_SUPPORT:  # a libvirt without that driver
            return {}
        raise


def _xml(device: libvirt.virNodeDevice) -> str | None:
    try:
        return str(device.XMLDesc())
    except libvirt.libvirtError as error:
        if code_of(error) == libvirt.VIR_ERR_NO_NODE_DEVICE:  # unplugged since it was listed
            return None
        raise
