"""Hardware of the host handed to a guest, as libvirt writes it."""

import re
from collections.abc import Iterable
from xml.etree import ElementTree as ET

from novacron.core.devices import HostDevice
from novacron.core.errors import Rejected

__all__ = ["handed_over", "hostdev"]

MEDIATED = "mdev"
PCI_ADDRESS = re.compile(r"([0-9a-f]{4}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])", re.IGNORECASE)


def hostdev(device: HostDevice) -> ET.Element:
    """Return the XML that hands a device to a guest; libvirt takes it from the host and back."""
    if device.kind == MEDIATED:
        element = ET.Element("hostdev", mode="subsystem", type="mdev", model="vfio-pci")
        ET.SubElement(ET.SubElement(element, "source"), "address", uuid=device.address)
        return element
    found = PCI_ADDRESS.fullmatch(device.address.lower())
    if found is None:
        raise Rejected(
            f"device {device.address} has no PCI address such as 0000:3b:00.0",
            reason="DeviceUnknown",
        )
    element = ET.Element("hostdev", mode="subsystem", type="pci", managed="yes")
    names = ("domain", "bus", "slot", "function")
    address = {name: f"0x{part}" for name, part in zip(names, found.groups(), strict=True)}
    ET.SubElement(ET.SubElement(element, "source"), "address", address)
    return element


def handed_over(hostdevs: Iterable[ET.Element]) -> frozenset[str]:
    """Return which devices of the host a domain has, each by a word of its own."""
    return frozenset(
        "/".join(value for _, value in sorted(address.attrib.items()))
        for each in hostdevs
        for address in each.findall("source/address")
    )
