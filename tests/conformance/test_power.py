"""Starting and stopping: orders may be repeated, and contradictions wait."""

import pytest

from conformance.under_test import Bench, FullDriver
from novacron.core.errors import Busy
from novacron.core.machine import MachineRef, Nic, Observed, Power


async def _switched(
    bench: Bench, driver: FullDriver, ref: MachineRef, want: Power, *, force: bool = False
) -> Observed:
    seen = await bench.after(driver.set_power(ref, want, force=force), driver, ref)
    assert seen is not None
    return seen


async def test_a_machine_is_started_and_stopped(bench: Bench, driver: FullDriver) -> None:
    """The two things an owner can say about power."""
    ref = (plan := bench.plan()).ref
    await bench.created(driver, plan)
    assert (await _switched(bench, driver, ref, Power.ON)).power is Power.ON
    assert (await _switched(bench, driver, ref, Power.OFF)).power is Power.OFF


@pytest.mark.parametrize("want", list(Power))
async def test_an_order_given_twice_is_one_order(
    bench: Bench, driver: FullDriver, want: Power
) -> None:
    """Also while the first is under way: the operator does not remember what it ordered."""
    ref = (plan := bench.plan()).ref
    await bench.created(driver, plan)
    await _switched(bench, driver, ref, Power.OFF if want is Power.ON else Power.ON)
    await driver.set_power(ref, want)
    await driver.set_power(ref, want)
    seen = await bench.settled(driver, ref)
    assert seen is not None
    assert seen.power is want
    assert await _switched(bench, driver, ref, want) == seen


async def test_a_forced_stop_stops(bench: Bench, driver: FullDriver) -> None:
    """What helps when the guest does not listen."""
    ref = (plan := bench.plan()).ref
    await bench.created(driver, plan)
    await _switched(bench, driver, ref, Power.ON)
    assert (await _switched(bench, driver, ref, Power.OFF, force=True)).power is Power.OFF


async def test_a_machine_is_either_changing_or_done(bench: Bench, driver: FullDriver) -> None:
    """What is observed right after an order is the truth of that moment, never the wish."""
    ref = (plan := bench.plan()).ref
    await bench.created(driver, plan)
    await driver.set_power(ref, Power.ON)
    seen = await driver.observe(ref)
    assert seen is not None
    assert (seen.changing is None) == (seen.power is Power.ON)


async def test_a_contradicting_order_waits_or_is_carried_out(
    bench: Bench, driver: FullDriver
) -> None:
    """Busy harms nothing: given again later, the order is carried out."""
    ref = (plan := bench.plan()).ref
    await bench.created(driver, plan)
    await driver.set_power(ref, Power.ON)
    try:
        await driver.set_power(ref, Power.OFF)
    except Busy:
        assert (seen := await bench.settled(driver, ref))
        assert seen.power is Power.ON
    assert (await _switched(bench, driver, ref, Power.OFF)).power is Power.OFF


async def test_running_machines_have_addresses_of_their_own(
    bench: Bench, driver: FullDriver
) -> None:
    """Two machines with one address reach nobody."""
    addresses: list[str] = []
    for uid in ("uid-1", "uid-2", "uid-3"):
        plan = bench.plan(uid, name=uid, nics=(Nic("default"),))
        await bench.created(driver, plan)
        await _switched(bench, driver, plan.ref, Power.ON)
    for uid in ("uid-1", "uid-2", "uid-3"):
        addresses += (await bench.addressed(driver, bench.plan(uid, name=uid).ref)).addresses
    assert len(addresses) == len(set(addresses)) >= 3


async def test_an_order_to_a_machine_that_went_away_says_look_again(
    bench: Bench, driver: FullDriver
) -> None:
    """The operator saw it a moment ago; it must look again, not give up on the spec."""
    plan = bench.plan()
    await bench.created(driver, plan)
    await bench.disturb.destroy("uid-1")
    with pytest.raises(Busy):
        await driver.set_power(plan.ref, Power.ON)
    with pytest.raises(Busy):
        await driver.resize(bench.resized(plan, bench.large))
    assert await driver.observe(plan.ref) is None
    assert (await bench.created(driver, plan)).power is Power.OFF
