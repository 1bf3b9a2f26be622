"""Operations take their time, and nobody has to be running when it is up."""

from datetime import timedelta

import pytest

from conformance.drivers.simulation import HandClock
from novacron.core.errors import Busy, OutOfCapacity
from novacron.core.machine import Power, Resources
from novacron.drivers.simulation import Delays, SimulatedHost, SimulationDriver
from unit.drivers.simulation.simulated import ROOM, SMALL, Connect, plan

MINUTE = timedelta(minutes=1)
SLOW = SimulatedHost("a", ROOM, delays=Delays(MINUTE, MINUTE, MINUTE, MINUTE, MINUTE))


async def _created(driver: SimulationDriver, clock: HandClock, size: Resources = SMALL) -> None:
    await driver.create(plan(size=size))
    await clock.pass_time(MINUTE)


async def test_an_operation_without_delay_is_done_when_the_call_returns(connect: Connect) -> None:
    """The next observation sees the end state, so a round of the operator can go on at once."""
    driver = connect(SimulatedHost("a", ROOM))
    assert (await driver.create(plan())).look_again == timedelta(0)
    await driver.set_power(plan().ref, Power.ON)
    seen = await driver.observe(plan().ref)
    assert seen is not None
    assert (seen.power, seen.changing) == (Power.ON, None)


async def test_an_operation_is_visible_until_its_time_is_up(
    connect: Connect, clock: HandClock
) -> None:
    """And its end is exactly when the answer said to look again."""
    driver = connect(SLOW)
    await _created(driver, clock)
    accepted = await driver.set_power(plan().ref, Power.ON)
    assert accepted.look_again == MINUTE
    await clock.pass_time(MINUTE - timedelta(microseconds=1))
    before = await driver.observe(plan().ref)
    await clock.pass_time(timedelta(microseconds=1))
    after = await driver.observe(plan().ref)
    assert before is not None
    assert after is not None
    assert (before.power, before.changing) == (Power.OFF, "start")
    assert before.due == timedelta(microseconds=1)
    assert (after.power, after.changing, after.due) == (Power.ON, None, None)


async def test_an_operation_ends_though_its_process_did(connect: Connect, clock: HandClock) -> None:
    """The file knows when; the operator that gave the order may be long gone."""
    await connect(SLOW).create(plan())
    await clock.pass_time(MINUTE)
    seen = await connect(SLOW).observe(plan().ref)
    assert seen is not None
    assert seen.changing is None


async def test_a_repeated_order_tells_the_time_that_is_left(
    connect: Connect, clock: HandClock
) -> None:
    """A restarted operator waits for the rest, not for the whole time again."""
    driver = connect(SLOW)
    await driver.create(plan())
    await clock.pass_time(MINUTE / 4)
    assert (await driver.create(plan())).look_again == MINUTE * 3 / 4
    await clock.pass_time(MINUTE * 3 / 4)
    assert (await driver.create(plan())).look_again == timedelta(0)


async def test_a_contradicting_order_is_busy_for_the_time_that_is_left(
    connect: Connect, clock: HandClock
) -> None:
    """So the operator comes back when it makes sense, not every second."""
    driver = connect(SLOW)
    await driver.create(plan())
    await clock.pass_time(MINUTE / 4)
    for order in (
        driver.set_power(plan().ref, Power.ON),
        driver.delete(plan().ref),
        driver.resize(plan(size=ROOM)),
    ):
        with pytest.raises(Busy, match=r"at work on machine web \(create\)") as caught:
            await order
        assert caught.value.after == MINUTE * 3 / 4


async def test_a_machine_cannot_be_made_while_it_is_removed(
    connect: Connect, clock: HandClock
) -> None:
    """Else a new owner of the UID would be told it has a machine that is about to go."""
    driver = connect(SLOW)
    await _created(driver, clock)
    await driver.delete(plan().ref)
    with pytest.raises(Busy):
        await driver.create(plan())
    await clock.pass_time(MINUTE)
    assert await driver.observe(plan().ref) is None


async def test_a_forced_stop_cuts_a_start_short(connect: Connect, clock: HandClock) -> None:
    """A guest that hangs while booting must be stoppable."""
    driver = connect(SLOW)
    await _created(driver, clock)
    await driver.set_power(plan().ref, Power.ON)
    assert (await driver.set_power(plan().ref, Power.OFF, force=True)).look_again == timedelta(0)
    seen = await driver.observe(plan().ref)
    assert seen is not None
    assert (seen.power, seen.changing) == (Power.OFF, None)
    await clock.pass_time(MINUTE)
    assert await driver.observe(plan().ref) == seen


async def test_a_forced_stop_waits_for_anything_else(connect: Connect, clock: HandClock) -> None:
    """Cutting a removal short would bring the machine back."""
    driver = connect(SLOW)
    await _created(driver, clock)
    await driver.delete(plan().ref)
    with pytest.raises(Busy):
        await driver.set_power(plan().ref, Power.OFF, force=True)


@pytest.mark.parametrize(("order", "free"), [("grow", 4), ("shrink", 8), ("delete", 8)])
async def test_room_is_held_as_long_as_either_size_needs_it(
    connect: Connect, clock: HandClock, order: str, free: int
) -> None:
    """A machine that grows already needs the new room; one that shrinks or goes still has it."""
    driver, half = connect(SLOW), Resources(8, 1024, 0)
    await _created(driver, clock, half)
    if order == "delete":
        await driver.delete(plan().ref)
    else:
        await driver.resize(plan(size=Resources(12 if order == "grow" else 1, 1024, 0)))
    with pytest.raises(OutOfCapacity, match=f"host a has {free} of 16 CPUs free, 10 are asked for"):
        await driver.create(plan("uid-2", size=Resources(10, 1024, 0)))
    await clock.pass_time(MINUTE)
    if order != "grow":
        await driver.create(plan("uid-2", size=Resources(10, 1024, 0)))


def test_an_operation_cannot_take_less_than_no_time() -> None:
    """It would have ended before it began."""
    with pytest.raises(ValueError, match="less than no time"):
        Delays(start=timedelta(seconds=-1))
