"""Every running machine has an address, keeps it, and gives it back when it goes."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from novacron.core.errors import OutOfCapacity
from novacron.core.machine import Nic, Power
from novacron.drivers.simulation import SimulatedHost, SimulationDriver
from unit.drivers.simulation.simulated import ROOM, Connect, plan

HOST = SimulatedHost("a", ROOM)


async def _addresses(driver: SimulationDriver, uid: str, *nics: Nic) -> tuple[str, ...]:
    ref = plan(uid).ref
    await driver.create(plan(uid, nics=nics))
    await driver.set_power(ref, Power.ON)
    seen = await driver.observe(ref)
    assert seen is not None
    return seen.addresses


async def test_each_host_has_a_network_of_its_own(connect: Connect) -> None:
    """The second number of an address tells the host."""
    assert await _addresses(connect(HOST), "uid-1") == ("10.1.0.2",)
    assert await _addresses(connect(HOST), "uid-2") == ("10.1.0.3",)
    other = connect(SimulatedHost("b", ROOM))
    await other.create(plan(host="b"))
    await other.set_power(plan(host="b").ref, Power.ON)
    assert [seen.addresses for seen in await other.machines("b")] == [("10.2.0.2",)]


async def test_only_a_running_machine_has_addresses(connect: Connect) -> None:
    """Nobody answers at the address of a stopped one; started again, it has the same."""
    driver = connect(HOST)
    had = await _addresses(driver, "uid-1")
    await driver.set_power(plan().ref, Power.OFF)
    seen = await driver.observe(plan().ref)
    assert seen is not None
    assert seen.addresses == ()
    assert await _addresses(driver, "uid-1") == had


async def test_every_interface_has_an_address_in_the_order_asked_for(connect: Connect) -> None:
    """A static one is the owner's word; the others come from the host's network."""
    nics = (Nic("lan"), Nic("dmz", address="192.168.1.100/24"), Nic("lan"))
    assert await _addresses(connect(HOST), "uid-1", *nics) == (
        "10.1.0.2",
        "192.168.1.100",
        "10.1.0.3",
    )


async def test_an_address_is_given_again_when_its_machine_is_gone(connect: Connect) -> None:
    """Hosts live long and networks are finite."""
    driver = connect(HOST)
    first = await _addresses(driver, "uid-1", Nic("lan"), Nic("lan"))
    await _addresses(driver, "uid-2")
    await driver.delete(plan("uid-1").ref)
    assert await _addresses(driver, "uid-3") == first[:1]
    assert await _addresses(driver, "uid-4", Nic("lan"), Nic("lan")) == (first[1], "10.1.0.5")


async def test_a_refused_machine_costs_no_address(connect: Connect) -> None:
    """What was refused has left nothing."""
    driver = connect(HOST)
    with pytest.raises(OutOfCapacity):
        await driver.create(plan("uid-1", size=ROOM + ROOM))
    assert await _addresses(driver, "uid-2") == ("10.1.0.2",)


async def test_a_network_without_addresses_is_a_full_host(connect: Connect, path: Path) -> None:
    """Another host has addresses: the machine is placed again."""
    driver = connect(HOST)
    assert await _addresses(driver, "uid-1") == ("10.1.0.2",)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE hosts SET next_slot = 65534")
    assert await _addresses(driver, "uid-2") == ("10.1.255.254",)
    with pytest.raises(OutOfCapacity, match="host a has no address free"):
        await driver.create(plan("uid-3"))
    await driver.delete(plan("uid-1").ref)
    assert await _addresses(driver, "uid-3") == ("10.1.0.2",)
