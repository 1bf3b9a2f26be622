"""The network of a host that machines are plugged into: a bridge with DHCP, made by libvirt."""

import hashlib
import ipaddress
from xml.etree import ElementTree as ET

import libvirt

from novacron.drivers.libvirt.errors import NOT_THERE, code_of

__all__ = ["ensure_network"]

DNSMASQ = "http://libvirt.org/schemas/network/dnsmasq/1.0"
ET.register_namespace("dnsmasq", DNSMASQ)

SECOND_BYTES = (213, 214, 215, 216, 217)


def ensure_network(connection: libvirt.virConnect, name: str) -> None:
    """Have a network of this name, started. Blocks."""
    network = _found(connection, name)
    if network is None:
        network = _made(connection, name)
    elif not network.isActive() and _is_ours(network, name):
        network = _moved(connection, network, name)
    if not network.isActive():
        network.create()


def subnets(name: str) -> list[ipaddress.IPv4Network]:
    """Return what to try in turn; networks of other names rarely try the same.

    What another network of the host has by now is refused by libvirt.
    """
    third = hashlib.sha256(name.encode()).digest()[0]
    return [ipaddress.IPv4Network(f"10.{second}.{third}.0/24") for second in SECOND_BYTES]


def _found(connection: libvirt.virConnect, name: str) -> libvirt.virNetwork | None:
    try:
        return connection.networkLookupByName(name)
    except libvirt.libvirtError as error:
        if code_of(error) in NOT_THERE:
            return None
        raise


def _made(connection: libvirt.virConnect, name: str) -> libvirt.virNetwork:
    *others, last = subnets(name)
    for subnet in others:
        network = connection.networkDefineXML(_definition(name, subnet))
        try:
            network.create()
        except libvirt.libvirtError:
            if network.isActive():
                return network  # another process of ours was faster
            # Its addresses may be in use; they are part of the definition.
            network.undefine()
            continue
        network.setAutostart(1)
        return network
    network = connection.networkDefineXML(_definition(name, last))
    network.setAutostart(1)
    return network


def _moved(
    connection: libvirt.virConnect, network: libvirt.virNetwork, name: str
) -> libvirt.virNetwork:
    """Start a network, with other addresses if somebody took its own while it was down."""
    try:
        network.create()
    except libvirt.libvirtError:
        if network.isActive():
            return network
        network.undefine()
        return _made(connection, name)
    return network


def _is_ours(network: libvirt.virNetwork, name: str) -> bool:
    """Say whether we made a network: its bridge has the name that we would give it."""
    bridge = ET.fromstring(network.XMLDesc()).find("bridge")  # noqa: S314 - libvirt's own
    return bridge is not None and bridge.get("name") == _bridge(name)


def _bridge(name: str) -> str:
    return f"{name[:11]}br0"


def _definition(name: str, subnet: ipaddress.IPv4Network) -> str:
    hosts = list(subnet.hosts())
    network = ET.Element("network")
    ET.SubElement(network, "name").text = name
    ET.SubElement(network, "forward", mode="nat")
    ET.SubElement(network, "bridge", name=_bridge(name), stp="off", delay="0")
    address = ET.SubElement(network, "ip", address=str(hosts[0]), netmask=str(subnet.netmask))
    dhcp = ET.SubElement(address, "dhcp")
    # The lower half is for addresses that machines ask for by themselves.
    ET.SubElement(dhcp, "range", start=str(hosts[len(hosts) // 2]), end=str(hosts[-1]))
    # Otherwise every guest waits three seconds for its first address while it is tried out.
    options = ET.SubElement(network, f"{{{DNSMASQ}}}options")
    ET.SubElement(options, f"{{{DNSMASQ}}}option", value="no-ping")
    return ET.tostring(network, encoding="unicode")
