"""Two hosts that have little of each thing, machines that ask for it, and what is left of it.

What is left is a plain sum over what is written, beside the tables of those who decide.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from novacron.core.machine import Holding, Machine, Power, Resources
from novacron.core.quantity import format_mib
from novacron.core.resources import Share
from novacron.core.wanted_device import WantedDevice
from novacron.scheduler import HostTable, devices_on, fits
from unit.controllers.office import Office

__all__ = [
    "GROWS_ONLY",
    "HOSTS",
    "THINGS",
    "Left",
    "add_hosts",
    "asked",
    "can_have",
    "grown",
    "left",
]

Object = dict[str, Any]
# How much there is of a thing on each host, or of what is on both for both.
Left = Mapping[tuple[str, str], int]

HOSTS = ("host-a", "host-b")
# How much is one of eight, of which a host has all: CPUs, MiB or devices. Of the two classes of
# storage, both hosts have the second one together.
LOCAL, COMMON, DEVICES = "fast", "nas", "devices"
ONE = {"cpu": 1, "memory": 8 << 10, "disk": 128 << 10, LOCAL: 1 << 10, COMMON: 1 << 10, DEVICES: 1}
THINGS = tuple(ONE)
GROWS_ONLY = frozenset({"disk", LOCAL, COMMON})
ROOM = {thing: 8 * one for thing, one in ONE.items()}
GPU = {"type": "gpu", "vendor": "nvidia", "model": "tesla-t4"}


def add_hosts(office: Office) -> None:
    """Have both hosts, with eight of everything."""
    room = [{"name": name, "allocatable": format_mib(ROOM[name])} for name in (LOCAL, COMMON)]
    room[1]["storageID"] = COMMON
    gpus = [{"address": f"0000:0{number}:00.0", **GPU} for number in range(ROOM[DEVICES])]
    says = {"storageClasses": room, "storageIDs": [COMMON], "devices": gpus}
    classes = [{"name": LOCAL}, {"name": COMMON, "shared": True}]
    for name in HOSTS:
        office.add_host(name, says=says, simulation={"storageClasses": classes})


def asked(counts: Mapping[str, int]) -> Object:
    """Return what a machine's template says that is to have so many of eight of some things."""
    said: Object = {}
    volumes = []
    for thing, count in counts.items():
        amount = count * ONE[thing]
        if thing in (LOCAL, COMMON):
            volumes += [{"name": thing, "storageClass": thing, "size": format_mib(amount)}]
        elif thing == DEVICES:
            said["devices"] = [{"type": "gpu", "count": amount}]
        else:
            said[thing] = amount if thing == "cpu" else format_mib(amount)
    return said | ({"volumes": volumes} if volumes else {})


def left(holdings: Iterable[Holding]) -> Left:
    """Return what is left of each thing on each host; below zero, it was promised twice."""
    every = list(holdings)
    return {
        (thing, host): ROOM[thing]
        - _taken(thing, [each for each in every if thing == COMMON or each.host == host])
        for thing in THINGS
        for host in HOSTS
    }


def _taken(thing: str, holdings: list[Holding]) -> int:
    if thing == DEVICES:
        addresses = [device.address for each in holdings for device in each.devices]
        # One that two have is worse than all being taken.
        return len(addresses) + ROOM[DEVICES] * (len(addresses) - len(set(addresses)))
    if thing not in (LOCAL, COMMON):
        return sum(_amounts(each.resources)[thing] for each in holdings)
    volumes: dict[str, int] = {}
    for share in (share for each in holdings for share in each.resources.shares):
        if share.storage_class == thing:
            volumes[share.volume] = max(volumes.get(share.volume, 0), share.mib)
    return sum(volumes.values())


def grown(machine: Machine, before: Resources | None) -> dict[str, int]:
    """Return how much more of what a machine asks for than it has, or than nothing."""
    now, had = _amounts(machine.wanted), _amounts(before or Resources())
    more = {thing: now[thing] - had[thing] for thing in now if now[thing] > had[thing]}
    if before is None and machine.wanted_devices:
        more[DEVICES] = sum(each.count for each in machine.wanted_devices)
    return more


def _amounts(of: Resources) -> dict[str, int]:
    amounts = {"cpu": of.vcpus, "memory": of.memory_mib, "disk": of.disk_mib}
    for name in (LOCAL, COMMON):
        amounts[name] = sum(share.mib for share in of.shares if share.storage_class == name)
    return amounts


def can_have(table: HostTable, host: str, thing: str, amount: int) -> bool:
    """Say whether by a table one more machine could have that much of a thing on a host."""
    if thing == DEVICES:
        wanted = (WantedDevice("gpu", count=amount),) if amount else ()
        asking = Machine("new", "n", "new", Resources(), "tiny", Power.ON, wanted_devices=wanted)
        return devices_on(table, asking, host) is not None
    sizes = {
        "cpu": Resources(vcpus=amount),
        "memory": Resources(memory_mib=amount),
        "disk": Resources(disk_mib=amount),
    }
    other = Resources(shares=(Share(thing, "new", amount),))
    return fits(table, "new", host, sizes.get(thing, other)) is None
