"""How a guest is to set up its interfaces, in the words of cloud-init's network configuration."""

from collections.abc import Iterable
from typing import Any

from novacron.core.machine import Nic

__all__ = ["network_configuration"]

# Of several gateways the first interface's is used, and none replaces another.
FIRST_METRIC = 100
# What Linux takes for IPv6 where nobody says otherwise.
USUAL_METRIC6 = 1024


def network_configuration(nics: Iterable[tuple[str, Nic]]) -> dict[str, Any]:
    """Return the configuration of all interfaces, each by its MAC address."""
    ethernets: dict[str, dict[str, Any]] = {}
    has_gateway6 = False
    for index, (mac, nic) in enumerate(nics):
        entry = ethernets[f"net{index}"] = _ethernet(mac, nic)
        routes = [_route("0.0.0.0/0", nic.gateway, index)] if nic.gateway else []
        if nic.gateway6 and not has_gateway6:
            # Old words: cloud-init before 23.1 makes ::/64 of a route to ::/0 in most systems.
            entry["gateway6"] = nic.gateway6
            has_gateway6 = True
        elif nic.gateway6:
            routes.append(_route("::/0", nic.gateway6, index, USUAL_METRIC6))
        if routes:
            entry["routes"] = routes
    return {"version": 2, "ethernets": ethernets}


def _route(to: str, via: str, index: int, more: int = 0) -> dict[str, Any]:
    return {"to": to, "via": via, "metric": FIRST_METRIC * (index + 1) + more}


def _ethernet(mac: str, nic: Nic) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "match": {"macaddress": mac},
        "dhcp4": nic.address is None,
        "addresses": [address for address in (nic.address, nic.address6) if address],
    }
    if nic.dhcp6:
        entry["dhcp6"] = True
    if nic.dns_servers or nic.dns_search:
        entry["nameservers"] = {
            "addresses": list(nic.dns_servers),
            "search": list(nic.dns_search),
        }
    return entry
