"""A simulated host gives what it has, in words that say how much that is."""

import re
from pathlib import Path

import pytest

from novacron.core.errors import OutOfCapacity, Rejected
from novacron.core.machine import Power, Resources, Usage
from novacron.drivers.simulation import SimulatedHost, UsageFractions, World
from unit.drivers.simulation.simulated import ROOM, Connect, plan


@pytest.mark.parametrize(
    ("size", "sentence"),
    [
        (Resources(4, 1, 0), "host a has 2 of 16 CPUs free, 4 are asked for"),
        (Resources(1, 9999, 0), "host a has 8192 of 16384 MiB of memory free, 9999 are asked for"),
        (Resources(1, 1, 90_001), "host a has 90000 of 100000 MiB of disk free, 90001 are asked"),
        (Resources(2**70, 1, 0), "host a has 2 of 16 CPUs free"),
    ],
)
async def test_a_full_host_says_what_is_missing(
    connect: Connect, size: Resources, sentence: str
) -> None:
    """The sentence ends up in the machine's condition."""
    driver = connect(SimulatedHost("a", ROOM))
    await driver.create(plan("uid-1", size=Resources(14, 8192, 10_000)))
    with pytest.raises(OutOfCapacity, match=re.escape(sentence)):
        await driver.create(plan("uid-2", size=size))


async def test_what_machines_may_take_can_be_more_than_there_is(connect: Connect) -> None:
    """Overcommit is the host's declaration; the facts stay what they are."""
    driver = connect(SimulatedHost("a", Resources(1, 1024, 1024), allocatable=ROOM))
    await driver.create(plan(size=Resources(16, 16384, 100_000)))
    assert [facts.capacity async for facts in driver.hosts()] == [Resources(1, 1024, 1024)]


async def test_growth_needs_room_only_for_what_grows(connect: Connect) -> None:
    """On a host that was made smaller a machine can still give something back."""
    await connect(SimulatedHost("a", ROOM)).create(plan(size=Resources(8, 4096, 1000)))
    shrunk = connect(SimulatedHost("a", Resources(4, 8192, 1000)))
    await shrunk.resize(plan(size=Resources(6, 8192, 1000)))
    with pytest.raises(OutOfCapacity, match="host a has 0 of 4 CPUs free, 1 more are asked for"):
        await shrunk.resize(plan(size=Resources(7, 8192, 1000)))


@pytest.mark.parametrize("size", [Resources(0, 1, 1), Resources(1, 0, 1), Resources(1, 1, -1)])
async def test_a_machine_that_cannot_be_is_rejected(connect: Connect, size: Resources) -> None:
    """No host would ever take it, so nobody should go on trying."""
    driver = connect(SimulatedHost("a", ROOM))
    with pytest.raises(Rejected, match="cannot be made"):
        await driver.create(plan(size=size))
    with pytest.raises(Rejected, match="cannot be made"):
        await driver.resize(plan(size=size))


async def test_a_driver_speaks_for_its_own_host_only(connect: Connect) -> None:
    """A machine made on the wrong host would never be found again."""
    driver = connect(SimulatedHost("a", ROOM))
    with pytest.raises(Rejected, match="host b is not reached through host a"):
        await driver.create(plan(host="b"))


async def test_hosts_of_one_file_have_rooms_and_machines_of_their_own(connect: Connect) -> None:
    """Also the same UID: a machine on two hosts must show as two, or nobody would notice."""
    a, b = connect(SimulatedHost("a", ROOM)), connect(SimulatedHost("b", ROOM))
    await a.create(plan(size=Resources(16, 1, 0)))
    await b.create(plan(host="b", size=Resources(16, 1, 0)))
    assert len(await a.machines("a")) == len(await b.machines("b")) == 1


async def test_machines_of_others_take_room_too(connect: Connect, path: Path) -> None:
    """A host is as full as it is, whoever filled it."""
    with World(path) as world:
        world.plant("a", "theirs", Resources(15, 1, 0))
    with pytest.raises(OutOfCapacity, match="host a has 1 of 16 CPUs free, 2 are asked for"):
        await connect(SimulatedHost("a", ROOM)).create(plan())


async def test_usage_is_a_part_of_what_was_given(connect: Connect) -> None:
    """A stopped machine uses its disk only."""
    driver = connect(SimulatedHost("a", ROOM, usage=UsageFractions(0.5, 0.25, 0.1)))
    await driver.create(plan())
    off = await driver.observe(plan().ref)
    await driver.set_power(plan().ref, Power.ON)
    on = await driver.observe(plan().ref)
    assert off is not None
    assert on is not None
    assert off.usage == Usage(0.0, 0, 1000)
    assert on.usage == Usage(1.0, 256, 1000)
