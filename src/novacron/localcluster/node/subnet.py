"""Which addresses the pods of one local cluster may have: a private network nobody here uses.

Standard library only.
"""

import hashlib
import ipaddress
import json
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from pathlib import Path

from novacron.localcluster.errors import LocalClusterError
from novacron.workplace.files import write_private

__all__ = ["Subnet", "choose", "recorded"]

ROUTES = Path("/proc/net/route")
# 10.128.0.0/9 in slices of 254 pods; the Services of the local cluster are below it.
POOL = ipaddress.ip_network("10.128.0.0/9")
PREFIX = 24
FILE = "network.json"


@dataclass(frozen=True, slots=True)
class Subnet:
    """A network, and the name of the bridge that carries it."""

    network: IPv4Network
    bridge: str

    @property
    def gateway(self) -> IPv4Interface:
        """Return the address of the machine itself in it."""
        return ipaddress.IPv4Interface(f"{self.network[1]}/{self.network.prefixlen}")

    def has(self, address: str) -> bool:
        """Say whether an address is one of these."""
        return bool(address) and IPv4Address(address) in self.network

    def free(self, taken: Iterable[str]) -> IPv4Interface:
        """Return an address that no pod has."""
        used = {IPv4Address(address) for address in taken} | {self.gateway.ip}
        for address in self.network.hosts():
            if address not in used:
                return ipaddress.IPv4Interface(f"{address}/{self.network.prefixlen}")
        raise LocalClusterError(f"all addresses of {self.network} are taken; delete some pods")


def recorded(directory: Path) -> Subnet | None:
    """Return what was chosen for the node that lives in a directory."""
    try:
        network = json.loads((directory / FILE).read_text())["network"]
        return Subnet(ipaddress.IPv4Network(network), _bridge(directory))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def choose(directory: Path, routes: str | None = None) -> Subnet:
    """Return the recorded network unless somebody else uses it now; or else a free one."""
    bridge = _bridge(directory)
    others = list(_routed(ROUTES.read_text() if routes is None else routes, bridge))
    known = recorded(directory)
    if known and not _overlaps(known.network, others):
        return known
    network = next((each for each in _candidates(bridge) if not _overlaps(each, others)), None)
    if network is None:
        raise LocalClusterError(f"every network in {POOL} is in use; none is left for pods")
    write_private(directory / FILE, json.dumps({"network": str(network)}))
    return Subnet(network, bridge)


def _bridge(directory: Path) -> str:
    # Several local clusters may run on one machine; a link's name has 15 characters at most.
    return f"nova{hashlib.sha256(str(directory.absolute()).encode()).hexdigest()[:10]}"


def _candidates(seed: str) -> Iterator[IPv4Network]:
    # Each cluster begins elsewhere: two that start at once must not choose the same.
    count = 2 ** (PREFIX - POOL.prefixlen)
    first = int(hashlib.sha256(seed.encode()).hexdigest(), 16) % count
    base, size = int(POOL.network_address), 2 ** (32 - PREFIX)
    for step in range(count):
        yield IPv4Network((base + (first + step) % count * size, PREFIX))


def _routed(routes: str, own: str) -> Iterator[IPv4Network]:
    for line in routes.splitlines()[1:]:
        link, destination, *rest = line.split()
        mask = _address(rest[5])
        if link != own and int(mask):
            yield IPv4Network(f"{_address(destination)}/{mask}", strict=False)


def _address(text: str) -> IPv4Address:
    return IPv4Address(struct.pack("=I", int(text, 16)))


def _overlaps(network: IPv4Network, others: Iterable[IPv4Network]) -> bool:
    return any(network.overlaps(other) for other in others)
