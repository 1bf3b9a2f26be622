"""How a guest is to set up its interfaces, in the words of cloud-init's network configuration."""

from collections.abc import Iterable
from typing import Any

from novacron.core.machine import Nic

__all__ = ["network_configuration"]

# Of several gateways the first interface's is used, and none replaces another.
FIRST_METRIC = 100


def network_configuration(nics: Iterable[tuple[str, Nic]]) -> dict[str, Any]:
    """Return the configuration of all interfaces, each by its MAC address."""
    ethernets = {
        f"net{index}": _ethernet(mac, nic, FIRST_METRIC * (index + 1))
        for index, (mac, nic) in enumerate(nics)
    }
    return {"version": 2, "ethernets": ethernets}


def _ethernet(mac: str, nic: Nic, metric: int) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "match": {"macaddress": mac},
        "dhcp4": nic.address is None,
        "addresses": [address for address in (nic.address, nic.address6) if address],
    }
    if nic.dhcp6:
        entry["dhcp6"] = True
    routes = [
        {"to": "0.0.0.0/0" if "." in gateway else "::/0", "via": gateway, "metric": metric}
        for gateway in (nic.gateway, nic.gateway6)
        if gateway
    ]
    if routes:
        entry["routes"] = routes
    if nic.dns_servers or nic.dns_search:
        entry["nameservers"] = {
            "addresses": list(nic.dns_servers),
            "search": list(nic.dns_search),
        }
    return entry
