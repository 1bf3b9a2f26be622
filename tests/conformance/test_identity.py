"""A machine is known by its owner's UID and by nothing else."""

import asyncio

from conformance.under_test import Bench, FullDriver
from novacron.core.machine import MachinePlan, Power


async def test_an_absent_machine_is_observed_as_none(bench: Bench, driver: FullDriver) -> None:
    """None is the only answer on which the operator creates something."""
    assert await driver.observe(bench.plan().ref) is None


async def test_a_created_machine_is_off_and_has_what_was_planned(
    bench: Bench, driver: FullDriver
) -> None:
    """Power is a step of its own: a crash in between must not leave a surprise running."""
    seen = await bench.created(driver, bench.plan())
    assert (seen.uid, seen.power, seen.resources) == ("uid-1", Power.OFF, bench.small)
    assert seen.vm_id


async def test_creating_twice_makes_one_machine(bench: Bench, driver: FullDriver) -> None:
    """The operator repeats a create whose answer it did not live to see."""
    first = await bench.created(driver, bench.plan())
    assert await bench.created(driver, bench.plan()) == first
    assert len(await driver.machines(bench.host)) == 1


async def test_creating_while_it_is_created_makes_one_machine(
    bench: Bench, driver: FullDriver
) -> None:
    """The repeat may come while the first order is still being carried out."""
    await driver.create(bench.plan())
    await driver.create(bench.plan())
    await bench.settled(driver, bench.plan().ref)
    assert len(await driver.machines(bench.host)) == 1


async def test_creating_from_two_connections_at_once_makes_one_machine(bench: Bench) -> None:
    """For a moment after a hand-over two operators may both believe it is theirs to make."""
    one, other = bench.connect(), bench.connect()
    await asyncio.gather(one.create(bench.plan()), other.create(bench.plan()))
    await bench.settled(one, bench.plan().ref)
    assert len(await one.machines(bench.host)) == 1


async def test_creating_a_machine_again_does_not_stop_it(bench: Bench, driver: FullDriver) -> None:
    """A create that comes late must not undo what came after it."""
    plan = bench.plan()
    await bench.created(driver, plan)
    await bench.after(driver.set_power(plan.ref, Power.ON), driver, plan.ref)
    assert (await bench.created(driver, plan)).power is Power.ON


async def test_a_new_connection_finds_the_machine_by_its_uid(
    bench: Bench, driver: FullDriver
) -> None:
    """Nothing may be known only to the process that made the machine."""
    seen = await bench.created(driver, bench.plan())
    await driver.close()
    assert await bench.connect().observe(bench.plan(name="renamed").ref) == seen


async def test_its_id_at_the_hypervisor_outlives_power_and_size(
    bench: Bench, driver: FullDriver
) -> None:
    """People look a machine up by this id while it is being worked on."""
    plan = bench.plan()
    made = await bench.created(driver, plan)
    await bench.after(driver.set_power(plan.ref, Power.ON), driver, plan.ref)
    grown = await bench.after(driver.resize(bench.resized(plan, bench.large)), driver, plan.ref)
    assert grown is not None
    assert grown.vm_id == made.vm_id


async def test_a_machine_of_the_same_name_is_never_touched(
    bench: Bench, driver: FullDriver
) -> None:
    """Names repeat across namespaces, clusters and time; only the UID says whose it is."""
    ours, theirs = bench.plan("ours", name="web"), bench.plan("theirs", name="web")
    before = await bench.created(driver, theirs)
    if bench.one_of_a_name:
        await _awaits_the_name(driver, ours)
        assert await driver.observe(theirs.ref) == before
        return
    await bench.created(driver, ours)
    await bench.after(driver.set_power(ours.ref, Power.ON), driver, ours.ref)
    await bench.after(driver.resize(bench.resized(ours, bench.large)), driver, ours.ref)
    assert await bench.after(driver.delete(ours.ref), driver, ours.ref) is None
    assert await driver.observe(theirs.ref) == before


async def test_a_machine_without_our_mark_is_not_ours(bench: Bench, driver: FullDriver) -> None:
    """Hosts are shared with people; what they made is neither listed, adopted nor removed."""
    await bench.disturb.plant("web")
    assert await driver.machines(bench.host) == []
    if bench.one_of_a_name:
        await _awaits_the_name(driver, bench.plan(name="web"))
        assert await driver.machines(bench.host) == []
        return
    made = await bench.created(driver, bench.plan(name="web"))
    assert await driver.machines(bench.host) == [made]


async def _awaits_the_name(driver: FullDriver, plan: MachinePlan) -> None:
    """See that a machine whose name is taken is not made, says so, and can be removed again."""
    seen = (await driver.create(plan)).seen
    assert seen is not None
    assert seen.hindered is not None
    assert seen.hindered.reason == "NameTaken"
    assert plan.ref.name in seen.hindered.message
    assert await driver.observe(plan.ref) is None
    await driver.delete(plan.ref)
