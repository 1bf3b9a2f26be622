"""Deletion: what is gone is gone, and saying so again is no error."""

from conformance.under_test import Bench, FullDriver
from novacron.core.machine import Nic, Power


async def test_deleting_an_absent_machine_succeeds(bench: Bench, driver: FullDriver) -> None:
    """A finalizer must come off even when somebody was faster."""
    await driver.delete(bench.plan().ref)
    assert await driver.observe(bench.plan().ref) is None


async def test_deleting_twice_succeeds(bench: Bench, driver: FullDriver) -> None:
    """The answer to the first may have been lost, or the first may still be under way."""
    ref = (plan := bench.plan()).ref
    await bench.created(driver, plan)
    await driver.delete(ref)
    await driver.delete(ref)
    assert await bench.settled(driver, ref) is None
    assert await bench.after(driver.delete(ref), driver, ref) is None


async def test_a_running_machine_can_be_deleted(bench: Bench, driver: FullDriver) -> None:
    """Whoever deletes a machine means it."""
    ref = (plan := bench.plan()).ref
    await bench.created(driver, plan)
    await bench.after(driver.set_power(ref, Power.ON), driver, ref)
    assert await bench.after(driver.delete(ref), driver, ref) is None


async def test_a_deleted_machine_leaves_nothing(bench: Bench, driver: FullDriver) -> None:
    """Its room, its address and its identity can all be used again."""
    nics = (Nic("default", address="192.168.7.7", gateway="192.168.7.1"),)
    for uid in ("uid-1", "uid-2", "uid-1"):
        plan = bench.plan(uid, size=bench.large, nics=nics)
        assert (await bench.created(driver, plan)).power is Power.OFF
        await bench.after(driver.set_power(plan.ref, Power.ON), driver, plan.ref)
        assert await bench.after(driver.delete(plan.ref), driver, plan.ref) is None
        assert await driver.machines(bench.host) == []


async def test_a_machine_made_again_is_a_new_one(bench: Bench, driver: FullDriver) -> None:
    """Nobody may take the second for the first by its id, unless that is the owner's own."""
    plan = bench.plan()
    first = await bench.created(driver, plan)
    await bench.after(driver.delete(plan.ref), driver, plan.ref)
    again = await bench.created(driver, plan)
    assert (again.vm_id == first.vm_id) is bench.ids_are_uids
