"""An Ethernet of the fleet's own, on which its hosts, their guests and the machine itself are.

A bridge with a cable into each host's namespace, where the other end is in a bridge for guests.
A guest that moves to another host so keeps its address and everybody who talks to it. The machine
gives out addresses and lets guests reach out, whichever host is down.
"""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from novacron.localcluster.errors import LocalClusterError
from novacron.localcluster.hypervisor.launch import program
from novacron.localcluster.hypervisor.network_namespace import has_link, ip
from novacron.localcluster.node.subnet import Subnet, choose, recorded
from novacron.localcluster.processes import Processes, Program
from novacron.workplace.programs import SEARCH

__all__ = ["GUEST_BRIDGE", "Segment"]

GUEST_BRIDGE = "lan"
CABLE_END = "lan-cable"
DHCP = "dnsmasq"
LINKS = Path("/sys/class/net")
FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
FIRST_GUEST, LAST_GUEST = 100, 250


@dataclass(frozen=True, slots=True)
class Segment:
    """The network that is recorded in one directory."""

    directory: Path

    @property
    def processes(self) -> Processes:
        """Return the record of who gives out addresses."""
        return Processes(self.directory / "process")

    def recorded(self) -> bool:
        """Say whether it was ever made."""
        return recorded(self.directory) is not None

    def address(self, number: int) -> str:
        """Return the address of a host, counted from one."""
        return str(self._subnet.network[1 + number])

    def make(self) -> bool:
        """Have the bridge, addresses for guests and a way out; say whether anything was missing."""
        known = recorded(self.directory)
        missing = known is None or not (LINKS / known.bridge).exists()
        subnet = choose(self.directory) if missing or known is None else known
        if missing:
            ip("link", "add", subnet.bridge, "address", _mac(subnet, 1), "type", "bridge")
        ip("address", "replace", str(subnet.gateway), "dev", subnet.bridge)
        ip("link", "set", subnet.bridge, "up")
        FORWARDING.write_text("1")
        for rule in _rules(subnet):
            if not _iptables("--check", rule):
                missing = True
                if not _iptables("--insert", rule):
                    raise LocalClusterError(f"iptables refused {' '.join(rule)}")
        return self.processes.start(self._dhcp(subnet)) or missing

    def plug(self, namespace: str, number: int) -> None:
        """Connect a host's namespace, unless it is."""
        subnet, cable, inside = self._subnet, self._cable(number), ("-netns", namespace)
        if not has_link(namespace, GUEST_BRIDGE):
            mac = ("address", _mac(subnet, 1 + number))
            ip(*inside, "link", "add", GUEST_BRIDGE, *mac, "type", "bridge")
        if not has_link(namespace, CABLE_END):
            if (LINKS / cable).exists():
                ip("link", "delete", cable)  # it leads into a namespace that has no name any more
            there = ("peer", "name", CABLE_END, "netns", namespace)
            ip("link", "add", cable, "type", "veth", *there)
        ip("link", "set", cable, "master", subnet.bridge, "up")
        ip(*inside, "link", "set", CABLE_END, "master", GUEST_BRIDGE, "up")
        address = f"{self.address(number)}/{subnet.network.prefixlen}"
        ip(*inside, "address", "replace", address, "dev", GUEST_BRIDGE)
        ip(*inside, "link", "set", GUEST_BRIDGE, "up")
        ip(*inside, "route", "replace", "default", "via", str(subnet.gateway.ip))

    def remove(self) -> bool:
        """Take everything away; cables went with the namespaces. Say whether there was anything."""
        subnet = recorded(self.directory)
        if subnet is None:
            return False
        ran = self.processes.stop(DHCP)
        for rule in _rules(subnet):
            while _iptables("--check", rule):
                _iptables("--delete", rule)
        if (LINKS / subnet.bridge).exists():
            ip("link", "delete", subnet.bridge)
            return True
        return ran

    @property
    def _subnet(self) -> Subnet:
        return recorded(self.directory) or choose(self.directory)

    def _cable(self, number: int) -> str:
        # A link's name has 15 characters at most.
        return f"nv{self._subnet.bridge[4:12]}-{number}"

    def _dhcp(self, subnet: Subnet) -> Program:
        start, end = subnet.network[FIRST_GUEST], subnet.network[LAST_GUEST]
        flags = (
            *("--keep-in-foreground", "--conf-file=/dev/null", "--pid-file", "--log-facility=-"),
            *("--bind-interfaces", f"--interface={subnet.bridge}", "--except-interface=lo"),
            *(f"--dhcp-range={start},{end}", f"--dhcp-leasefile={self.directory / 'leases'}"),
            # Otherwise every guest waits three seconds for its address while it is tried out.
            *("--dhcp-no-override", "--dhcp-authoritative", "--no-ping"),
        )
        supervised = (sys.executable, "-m", "novacron.localcluster.supervise")
        return Program(DHCP, (*supervised, program(DHCP), *flags), {"PATH": SEARCH})


def _rules(subnet: Subnet) -> tuple[tuple[str, ...], ...]:
    inside = str(subnet.network)
    out = ("--source", inside, "!", "--destination", inside)
    return (
        ("nat", "POSTROUTING", *out, "--jump", "MASQUERADE"),
        ("filter", "FORWARD", "--in-interface", subnet.bridge, "--jump", "ACCEPT"),
        ("filter", "FORWARD", "--out-interface", subnet.bridge, "--jump", "ACCEPT"),
    )


def _mac(subnet: Subnet, number: int) -> str:
    # Given, or else a bridge takes another with each cable, and its neighbours lose sight of it.
    octets = [0x02, *subnet.network[number].packed, 0x4E]
    return ":".join(f"{octet:02x}" for octet in octets)


def _iptables(change: str, rule: tuple[str, ...]) -> bool:
    table, *rest = rule
    command = [program("iptables"), "--wait", "--table", table, change, *rest]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
