"""Room: what does not fit is refused as a whole, and disks never shrink."""

from dataclasses import replace

import pytest

from conformance.under_test import STEP, STEPS, Bench, FullDriver
from novacron.core.driver import Capability
from novacron.core.errors import OutOfCapacity, Rejected
from novacron.core.machine import Power


async def test_a_machine_too_big_is_refused_and_leaves_nothing(
    bench: Bench, driver: FullDriver
) -> None:
    """OutOfCapacity sends the machine to another host; half a machine here would leak."""
    if not bench.limited:
        await _waits_for_room(bench, driver)
        return
    with pytest.raises(OutOfCapacity):
        await driver.create(bench.plan(size=bench.too_big))
    assert await driver.observe(bench.plan().ref) is None
    assert await driver.machines(bench.host) == []
    assert (await bench.created(driver, bench.plan())).resources == bench.small


@pytest.mark.parametrize("power", list(Power))
async def test_a_machine_grows_and_shrinks(bench: Bench, driver: FullDriver, power: Power) -> None:
    """CPU and memory go both ways; nothing else about the machine changes."""
    plan = bench.plan()
    await bench.created(driver, plan)
    before = await bench.after(driver.set_power(plan.ref, power), driver, plan.ref)
    assert before is not None
    smaller = replace(bench.small, disk_mib=bench.large.disk_mib)
    for size in (bench.large, smaller):
        seen = await bench.after(driver.resize(bench.resized(plan, size)), driver, plan.ref)
        seen = await bench.grown(driver, plan.ref)
        assert (seen.configured, seen.power) == (size, power)
        if seen.after_restart:
            assert seen.awaits_restart
            shrunk = bench.only_grows_running and size is smaller
            assert shrunk or Capability.RESIZE_RUNNING not in driver.capabilities
            await bench.after(driver.set_power(plan.ref, Power.OFF, force=True), driver, plan.ref)
            seen = await bench.after(driver.set_power(plan.ref, Power.ON), driver, plan.ref)
            assert seen is not None
            assert not seen.awaits_restart
        assert (seen.resources, seen.power, seen.vm_id) == (size, power, before.vm_id)


async def test_resizing_twice_is_resizing_once(bench: Bench, driver: FullDriver) -> None:
    """Also while the first is under way."""
    plan = bench.plan()
    await bench.created(driver, plan)
    grown = bench.resized(plan, bench.large)
    await driver.resize(grown)
    await driver.resize(grown)
    seen = await bench.settled(driver, plan.ref)
    assert seen is not None
    assert seen.resources == bench.large
    assert await bench.after(driver.resize(grown), driver, plan.ref) == seen


async def test_growth_beyond_the_host_is_refused_and_changes_nothing(
    bench: Bench, driver: FullDriver
) -> None:
    """The machine goes on with what it has."""
    if not bench.limited:
        return  # what it does with it is seen above
    plan = bench.plan()
    before = await bench.created(driver, plan)
    with pytest.raises(OutOfCapacity):
        await driver.resize(bench.resized(plan, bench.too_big))
    assert await bench.settled(driver, plan.ref) == before


async def test_a_disk_never_shrinks(bench: Bench, driver: FullDriver) -> None:
    """Whatever the guest keeps in the part cut off would be lost."""
    plan = bench.plan(size=bench.large)
    before = await bench.created(driver, plan)
    with pytest.raises(Rejected):
        await driver.resize(bench.resized(plan, bench.small))
    assert await bench.settled(driver, plan.ref) == before


async def _waits_for_room(bench: Bench, driver: FullDriver) -> None:
    """See that a machine is made, says why it does not start, and starts when it asks for less."""
    plan = bench.plan(size=bench.too_big)
    await bench.created(driver, plan)
    await driver.set_power(plan.ref, Power.ON)
    for _ in range(STEPS):
        seen = await driver.observe(plan.ref)
        assert seen is not None
        if seen.hindered is not None:
            break
        await bench.pass_time(STEP)
    assert seen.hindered is not None
    assert seen.hindered.reason == "InsufficientResources"
    assert (seen.power, seen.changing) == (Power.OFF, "start")
    await driver.resize(bench.resized(plan, bench.small))
    await driver.set_power(plan.ref, Power.OFF, force=True)
    await bench.settled(driver, plan.ref)
    seen = await bench.after(driver.set_power(plan.ref, Power.ON), driver, plan.ref)
    assert seen is not None
    assert (seen.power, seen.resources) == (Power.ON, bench.small)
