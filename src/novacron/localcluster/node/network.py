"""The network of the pods: a bridge, and for each pod a namespace with one cable to it.

The API server is reached at its Service's address, which every pod has on its own loopback: a
relay of ours listens there. Nothing of the machine's own network is changed beside the bridge,
so pods reach each other and the machine, not the world.
"""

import ipaddress
import os
import socket
from dataclasses import dataclass
from ipaddress import IPv4Interface
from pathlib import Path

from novacron.localcluster.layout import API_ADDRESS
from novacron.localcluster.node import netlink
from novacron.localcluster.node.namespaces import inside, namespace_of, new_namespace
from novacron.localcluster.node.subnet import Subnet

__all__ = ["API_PORT", "Network", "PodNetwork", "cable_of"]

LINK = "eth0"
API_PORT = 443
# As container runtimes do it: whoever is not root may listen on 443 too.
PORTS_FOR_ALL = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")


@dataclass(slots=True)
class PodNetwork:
    """One pod's part of the network."""

    handle: int
    cable: str

    def listen(self) -> socket.socket:
        """Return a socket that listens where the pod looks for the API server."""
        with inside(self.handle):
            return socket.create_server((API_ADDRESS, API_PORT))

    def close(self) -> None:
        """Take the pod off the network."""
        netlink.delete_link(self.cable)
        os.close(self.handle)


@dataclass(frozen=True, slots=True)
class Network:
    """The bridge and whoever is on it."""

    subnet: Subnet

    def ensure(self) -> None:
        """Make the bridge unless it is there."""
        if not netlink.has_link(self.subnet.bridge):
            netlink.add_bridge(self.subnet.bridge)
            netlink.add_address(self.subnet.bridge, self.subnet.gateway)

    def attach(self, uid: str, address: IPv4Interface) -> PodNetwork:
        """Give a pod a namespace with this address."""
        cable = cable_of(uid)
        netlink.delete_link(cable)
        handle = new_namespace()
        try:
            netlink.add_veth(cable, LINK, handle, self.subnet.bridge)
            with inside(handle):
                _furnish(address)
        except BaseException:
            os.close(handle)
            raise
        return PodNetwork(handle, cable)

    def adopt(self, uid: str, pid: int) -> PodNetwork:
        """Take over the namespace of a pod whose process still runs."""
        cable = cable_of(uid)
        netlink.join(cable, self.subnet.bridge)
        return PodNetwork(namespace_of(pid), cable)


def _furnish(address: IPv4Interface) -> None:
    netlink.set_up("lo")
    netlink.add_address("lo", ipaddress.IPv4Interface(f"{API_ADDRESS}/32"))
    netlink.set_up(LINK)
    netlink.add_address(LINK, address)
    PORTS_FOR_ALL.write_text("0")


def cable_of(uid: str) -> str:
    """Return the name of the machine's end of a pod's cable."""
    return f"nv{uid.replace('-', '')[:13]}"
