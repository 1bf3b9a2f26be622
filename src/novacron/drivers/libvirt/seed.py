"""The guest's first instructions: who it is, how it reaches the network, what to run."""

import json
from dataclasses import dataclass
from typing import Any

from novacron.core.machine import MachinePlan, Nic
from novacron.drivers.libvirt.domain import seed_volume
from novacron.drivers.libvirt.interfaces import mac_of

__all__ = ["Seed", "seed_of"]

# Of several gateways the first interface's is used, and none replaces another.
FIRST_METRIC = 100
ZEROS = bytes(4096)


@dataclass(frozen=True, slots=True)
class Seed:
    """The NoCloud disk of a machine: what it is called there, its length, and what is in it."""

    name: str
    length: int
    content: bytes


def seed_of(plan: MachinePlan) -> Seed:
    """Return the disk of a machine, the same for the same plan."""
    # Loaded when a machine is made: an operator of simulated hosts never needs it.
    from novacron.guests.nocloud import nocloud_image  # noqa: PLC0415

    ref = plan.ref
    meta = {"instance-id": ref.uid, "local-hostname": ref.name}
    network = {"version": 2, "ethernets": _ethernets(plan)}
    disk = nocloud_image(json.dumps(meta), plan.user_data or "", json.dumps(network))
    content = _content(disk)
    return Seed(seed_volume(ref.uid, content), len(disk), content)


def _content(disk: bytes) -> bytes:
    """Return what is to be written: most of a disk is empty at its end, and reads as zeros."""
    end = len(disk)
    # By blocks: taking single zeros off the end takes longer than all else that a seed costs.
    while disk.endswith(ZEROS, 0, end):
        end -= len(ZEROS)
    return disk[:end]


def _ethernets(plan: MachinePlan) -> dict[str, Any]:
    return {
        f"net{index}": _ethernet(mac_of(plan.ref.uid, nic), nic, FIRST_METRIC * (index + 1))
        for index, nic in enumerate(plan.nics)
    }


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
