"""Hosts, machines and tables for the scheduler's tests."""

from dataclasses import replace
from typing import Any

from novacron.core.host import Host
from novacron.core.machine import Machine, Power, Resources
from novacron.scheduler import HostTable

ROOM = Resources(16, 16384, 100_000)
SMALL = Resources(2, 1024, 10_000)
MACHINE = Machine("uid-1", "default", "web", SMALL, "tiny", Power.ON)


def host(name: str, allocatable: Resources = ROOM, **marks: Any) -> Host:
    """A host that is ready and welcomes everybody, unless its marks say otherwise."""
    return Host(name, allocatable, **marks)


def machine(wanted: Resources = SMALL, **wishes: Any) -> Machine:
    """A machine that wants this much."""
    return replace(MACHINE, wanted=wanted, **wishes)


def table(*hosts: Host) -> HostTable:
    """A table of these hosts with nothing on them."""
    made = HostTable()
    for each in hosts:
        made.upsert(each)
    return made


def free(made: HostTable, name: str) -> Resources:
    """What the host has free."""
    row = made.row(name)
    assert row is not None
    return Resources(*(int(amount) for amount in made.free[:, row]))
