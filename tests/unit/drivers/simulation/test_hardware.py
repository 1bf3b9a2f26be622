"""A simulated host hands a device over once, and only one it has."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.drivers.simulation import HandClock
from novacron.core.devices import HostDevice
from novacron.core.errors import OutOfCapacity
from novacron.core.machine import MachinePlan
from novacron.drivers.simulation import SimulatedHost, World
from unit.drivers.simulation.simulated import ROOM, Connect, plan

GPU = HostDevice("0000:3b:00.0", "gpu", "nvidia", "tesla-t4")


def with_gpu(uid: str, device: HostDevice = GPU) -> MachinePlan:
    return replace(plan(uid), devices=(device,))


async def test_a_device_is_handed_over_once(connect: Connect) -> None:
    """Whoever keeps wrong books is told so, and nothing is left of the attempt."""
    driver = connect(SimulatedHost("a", ROOM, devices=(GPU,)))
    await driver.create(with_gpu("uid-1"))
    with pytest.raises(OutOfCapacity, match=re.escape("device 0000:3b:00.0 of host a is in use")):
        await driver.create(with_gpu("uid-2"))
    assert await driver.observe(plan("uid-2").ref) is None
    await driver.create(with_gpu("uid-1"))
    await driver.delete(plan("uid-1").ref)
    await driver.create(with_gpu("uid-2"))


async def test_a_device_that_is_not_there_is_refused(connect: Connect) -> None:
    """It may have been taken out since."""
    driver = connect(SimulatedHost("a", ROOM))
    with pytest.raises(OutOfCapacity, match=re.escape("host a has no device 0000:3b:00.0")):
        await driver.create(with_gpu("uid-1"))


async def test_a_host_tells_of_its_devices_and_the_world_who_has_them(
    connect: Connect, path: Path, clock: HandClock
) -> None:
    """For the scheduler, and for tests that look from outside."""
    driver = connect(SimulatedHost("a", ROOM, devices=(GPU,)))
    assert [facts.devices async for facts in driver.hosts()] == [(GPU,)]
    await driver.create(with_gpu("uid-1"))
    with World(path, clock=clock) as world:
        assert world.devices() == {("a", GPU.address): "uid-1"}
