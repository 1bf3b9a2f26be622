"""Network interfaces as libvirt writes them: what each is plugged into, and what it is known by."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from novacron.core.machine import Nic
from novacron.drivers.libvirt.ports import Port

__all__ = ["Plugged", "interface", "mac_of", "plugged_in"]

# Locally administered, as QEMU's own addresses are; the rest tells machines apart.
MAC_PREFIX = bytes((0x52, 0x54))
MAC_BYTES = 6


def mac_of(uid: str, nic: Nic) -> str:
    """Return an interface's hardware address: the same for ever, whatever stands beside it."""
    if nic.mac:
        return nic.mac.lower()
    digest = hashlib.sha256(f"{uid}/{nic.network}".encode()).digest()
    return (MAC_PREFIX + digest)[:MAC_BYTES].hex(":")


def interface(mac: str, port: Port) -> ET.Element:
    """Return the XML of an interface that is plugged into a port."""
    element = ET.Element("interface", type=port.kind)
    ET.SubElement(element, "mac", address=mac)
    if port.source:
        ET.SubElement(element, "source", {port.kind: port.source})
    if port.is_ovs:
        ET.SubElement(element, "virtualport", type="openvswitch")
    if port.vlan is not None:
        ET.SubElement(ET.SubElement(element, "vlan"), "tag", id=str(port.vlan))
    ET.SubElement(element, "model", type="virtio")
    return element


@dataclass(frozen=True, slots=True)
class Plugged:
    """One interface of a definition or of a running guest, and the port that it is plugged into."""

    mac: str
    port: Port


def plugged_in(interfaces: Iterable[ET.Element]) -> tuple[Plugged, ...]:
    """Return the interfaces of a domain."""
    return tuple(
        Plugged(mac.get("address") or "", _port(element))
        for element in interfaces
        if (mac := element.find("mac")) is not None
    )


def _port(element: ET.Element) -> Port:
    kind = element.get("type") or ""
    source, tag = element.find("source"), element.find("vlan/tag")
    virtual = element.find("virtualport")
    if source is not None and (network := source.get("network")):
        # Of a running guest libvirt also tells what the network makes of it, which is not ours.
        return Port("network", network)
    return Port(
        kind,
        (source.get(kind) or "") if source is not None else "",
        is_ovs=virtual is not None and virtual.get("type") == "openvswitch",
        vlan=int(tag.get("id") or 0) if tag is not None else None,
    )
