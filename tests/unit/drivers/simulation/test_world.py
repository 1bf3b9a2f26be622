"""The world outside does what it likes, and the driver tells the truth about it."""

from datetime import timedelta
from pathlib import Path

import pytest

from conformance.drivers.simulation import HandClock
from novacron.core.machine import Power, Resources
from novacron.drivers.simulation import Delays, SimulatedHost, SimulatedMachine, World
from unit.drivers.simulation.simulated import ROOM, SMALL, Connect, plan


async def test_the_world_knows_every_machine_of_every_host(connect: Connect, path: Path) -> None:
    """What a crash test compares must not be what the driver under test says of itself."""
    for host in ("a", "b"):
        await connect(SimulatedHost(host, ROOM)).create(plan(f"uid-{host}", host=host))
    with World(path) as world:
        world.plant("b", "theirs", SMALL)
        a, b, theirs = world.machines()
    assert a == SimulatedMachine(
        "a", "sim-1", "uid-a", "default", "web", Power.OFF, SMALL, ("10.1.0.2",), None
    )
    assert (b.host, b.uid) == ("b", "uid-b")
    assert (theirs.uid, theirs.name, theirs.power) == (None, "theirs", Power.ON)


async def test_what_the_world_does_happens_at_once(connect: Connect, path: Path) -> None:
    """It cuts off whatever was under way, as a plug that is pulled does."""
    minute = timedelta(minutes=1)
    driver = connect(SimulatedHost("a", ROOM, delays=Delays(start=minute, resize=minute)))
    await driver.create(plan())
    with World(path, clock=HandClock()) as world:
        await driver.set_power(plan().ref, Power.ON)
        world.power_on("uid-1")
        seen = await driver.observe(plan().ref)
        assert seen is not None
        assert (seen.power, seen.changing) == (Power.ON, None)
        await driver.resize(plan(size=Resources(4, 4096, 10_000)))
        world.power_off("uid-1")
        seen = await driver.observe(plan().ref)
        assert seen is not None
        assert (seen.power, seen.changing, seen.resources) == (Power.OFF, None, SMALL)


async def test_what_takes_long_is_done_when_the_world_says_so(connect: Connect, path: Path) -> None:
    """Who saw a machine on its way need not wait for it, nor hope to have been quick enough."""
    driver = connect(SimulatedHost("a", ROOM, delays=Delays(start=timedelta(hours=1))))
    await driver.create(plan())
    await driver.set_power(plan().ref, Power.ON)
    with World(path, clock=HandClock()) as world:
        assert [each.changing for each in world.machines()] == ["start"]
        for _ in range(2):
            world.finish("uid-1")
            (machine,) = world.machines()
            assert (machine.power, machine.changing) == (Power.ON, None)


async def test_the_world_obeys_no_capacity_but_the_books_stay_right(
    connect: Connect, path: Path
) -> None:
    """An administrator can overfill a host; the driver then gives nothing more away."""
    driver = connect(SimulatedHost("a", ROOM))
    await driver.create(plan())
    with World(path) as world:
        world.resize("uid-1", Resources(64, 1024, 0))
        seen = await driver.observe(plan().ref)
        assert seen is not None
        assert seen.resources == Resources(64, 1024, 0)
        world.destroy("uid-1")
    assert await driver.observe(plan().ref) is None
    await driver.create(plan("uid-2", size=ROOM))


def test_nothing_can_be_done_to_a_machine_that_is_not_there(path: Path) -> None:
    """A test that disturbs nothing would prove nothing."""
    with World(path) as world, pytest.raises(LookupError, match="carries the UID nobody"):
        world.destroy("nobody")
