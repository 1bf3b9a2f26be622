"""Where interfaces of machines are plugged in on one host: names of networks, and what they mean.

Knows the host's settings; which bridges are there it has to be told.
"""

from collections.abc import Container
from dataclasses import dataclass

from novacron.core.errors import Rejected
from novacron.core.machine import Nic
from novacron.core.network import HOST_OWN, USER_MODE, HostNetwork, why_out_of_reach
from novacron.drivers.libvirt.host import LibvirtHost

__all__ = ["Port", "port_of", "reached_networks"]

BRIDGE = "bridge"
OVS = "ovs"
OFFERED = (BRIDGE, OVS, USER_MODE)


@dataclass(frozen=True, slots=True)
class Port:
    """What an interface is plugged into: libvirt's word for it, its name, and how it is tagged."""

    kind: str
    source: str = ""
    is_ovs: bool = False
    vlan: int | None = None


USER_MODE_PORT = Port("user")


def reached_networks(
    host: LibvirtHost, missing: Container[str] = frozenset()
) -> tuple[HostNetwork, ...]:
    """Return the networks of a host by their names; ``missing`` are bridges that are not there."""
    mapped = tuple(
        HostNetwork(name, (each.type,), _trouble(each.bridge) if each.bridge in missing else "")
        for name, each in host.networks.items()
    )
    if HOST_OWN in host.networks:
        return mapped
    # Where bridges may not be made it is user-mode networking, and called as elsewhere.
    return (HostNetwork(HOST_OWN, (BRIDGE,)), *mapped)


def _trouble(bridge: str) -> str:
    return f"bridge {bridge} is not there: make it, or change spec.libvirt.networks"


def port_of(host: LibvirtHost, nic: Nic) -> Port:
    """Return where an interface is plugged in; raise Rejected with what to set where it cannot."""
    if nic.type is not None and nic.type not in OFFERED:
        raise Rejected(
            f"network {nic.network}: type {nic.type} is not offered by libvirt hosts; "
            f"use one of {', '.join(OFFERED)}",
            reason="NetworkTypeUnsupported",
        )
    if why := why_out_of_reach(nic, reached_networks(host)):
        kind = nic.type or BRIDGE
        raise Rejected(
            f"host {host.name}: {why}; set spec.libvirt.networks.{nic.network} of the Host, such "
            f"as {{type: {kind}, bridge: br-{nic.network}}}, or call the network default",
            reason="NetworkNotReached",
        )
    mapped = host.networks.get(nic.network)
    if nic.type == USER_MODE or (mapped is not None and mapped.type == USER_MODE):
        return USER_MODE_PORT
    if mapped is not None:
        return Port("bridge", mapped.bridge, is_ovs=mapped.type == OVS, vlan=mapped.vlan)
    return Port("network", host.network) if host.network else USER_MODE_PORT
