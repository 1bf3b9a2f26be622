"""The network of a host that machines are plugged into: a bridge with DHCP, made by libvirt."""

import ipaddress
from xml.etree import ElementTree as ET

import libvirt

from novacron.drivers.libvirt.errors import NOT_THERE, code_of

__all__ = ["ensure_network"]

DNSMASQ = "http://libvirt.org/schemas/network/dnsmasq/1.0"
ET.register_namespace("dnsmasq", DNSMASQ)

# Tried in turn: what another network of the host already has is refused by libvirt.
SUBNETS = tuple(ipaddress.ip_network(f"10.{second}.0.0/24") for second in (213, 214, 215, 216, 217))


def ensure_network(connection: libvirt.virConnect, name: str) -> None:
    """Have a network of this name, started. Blocks."""
    network = _found(connection, name) or _made(connection, name)
    if not network.isActive():
        network.create()


def _found(connection: libvirt.virConnect, name: str) -> libvirt.virNetwork | None:
    try:
        return connection.networkLookupByName(name)
    except libvirt.libvirtError as error:
        if code_of(error) in NOT_THERE:
            return None
        raise


def _made(connection: libvirt.virConnect, name: str) -> libvirt.virNetwork:
    for subnet in SUBNETS[:-1]:
        network = connection.networkDefineXML(_definition(name, subnet))
        try:
            network.create()
        except libvirt.libvirtError:
            # Its addresses may be in use; they are part of the definition.
            network.undefine()
            continue
        network.setAutostart(1)
        return network
    return connection.networkDefineXML(_definition(name, SUBNETS[-1]))


def _definition(name: str, subnet: ipaddress.IPv4Network | ipaddress.IPv6Network) -> str:
    hosts = list(subnet.hosts())
    network = ET.Element("network")
    ET.SubElement(network, "name").text = name
    ET.SubElement(network, "forward", mode="nat")
    ET.SubElement(network, "bridge", name=f"{name[:11]}br0", stp="off", delay="0")
    address = ET.SubElement(network, "ip", address=str(hosts[0]), netmask=str(subnet.netmask))
    dhcp = ET.SubElement(address, "dhcp")
    # The lower half is for addresses that machines ask for by themselves.
    ET.SubElement(dhcp, "range", start=str(hosts[len(hosts) // 2]), end=str(hosts[-1]))
    # Otherwise every guest waits three seconds for its first address while it is tried out.
    options = ET.SubElement(network, f"{{{DNSMASQ}}}options")
    ET.SubElement(options, f"{{{DNSMASQ}}}option", value="no-ping")
    return ET.tostring(network, encoding="unicode")
