"""Addresses that are set aside for an interface, in the words of ``core.machine.Nic``.

They stand in the NetworkConfiguration that the interface is on: in its spec where a user wrote
them, or in its status where whoever hands out addresses did.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_interface, ip_network
from typing import Any

from novacron.core.errors import Rejected

__all__ = ["Addresses", "addresses_of"]

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Addresses:
    """What a guest is told about one interface; nothing is left to DHCP or the network."""

    address: str | None = None
    gateway: str | None = None
    address6: str | None = None
    gateway6: str | None = None
    dns_servers: tuple[str, ...] = ()


def addresses_of(configuration: Object, mac: str) -> Addresses:
    """Return what is set aside for the interface with this MAC address.

    Addresses that DHCP hands out are not told to the guest: it gets them by asking.
    """
    for entry in _entries(configuration, mac):
        if entry.get("dhcpReserved") or entry.get("allocationMethod") == "dhcp":
            return Addresses()
        if entry.get("ipv4Addresses") or entry.get("ipv6Addresses"):
            return Addresses(
                _address(entry, "ipv4"),
                entry.get("ipv4Gateway"),
                _address(entry, "ipv6"),
                entry.get("ipv6Gateway"),
                tuple(entry.get("dns") or ()),
            )
    return Addresses()


def _entries(configuration: Object, mac: str) -> Iterator[Object]:
    for part in ("spec", "status"):
        for entry in (configuration.get(part) or {}).get("networkInterfaces") or ():
            if entry.get("macAddress", "").lower() == mac.lower():
                yield entry


def _address(entry: Object, family: str) -> str | None:
    """Return the first address with its prefix length: its own, or its subnet's."""
    found = next(iter(entry.get(f"{family}Addresses") or ()), None)
    if found is None or "/" in found:
        return found
    subnet = entry.get(f"{family}Subnet")
    if subnet is None:
        raise Rejected(
            f"nothing says how large the network of {found} is: write it as {found}/24 or the "
            f"like, or set {family}Subnet beside it",
            reason="NetworkFailed",
        )
    return f"{ip_interface(found).ip}/{ip_network(subnet, strict=False).prefixlen}"
