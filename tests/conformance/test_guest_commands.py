"""Programs inside guests: each runs once for each start, and what came of it is kept."""

import pytest

from conformance.under_test import STEP, STEPS, Bench, FullDriver
from novacron.core.driver import Capability
from novacron.core.errors import Busy
from novacron.core.guest_commands import AGENT_SILENT, GuestCommands
from novacron.core.hooks import GuestProgram, Ran
from novacron.core.machine import MachineRef, Power

SUCCESS = GuestProgram(("true",))
FAILURE = GuestProgram(("false",))
ENDLESS = GuestProgram(("sleep", "290"))


async def _commands(bench: Bench, driver: FullDriver) -> tuple[GuestCommands, MachineRef]:
    if Capability.GUEST_COMMANDS not in driver.capabilities:
        pytest.skip("runs no programs in guests")
    assert isinstance(driver, GuestCommands)
    plan = bench.plan()
    await bench.created(driver, plan)
    await bench.after(driver.set_power(plan.ref, Power.ON), driver, plan.ref)
    return driver, plan.ref


async def _ended(
    bench: Bench, commands: GuestCommands, ref: MachineRef, name: str, program: GuestProgram
) -> Ran:
    for _ in range(STEPS):
        try:
            ran = await commands.run_once(ref, name, program)
        except Busy as error:
            if error.reason != AGENT_SILENT:
                raise
            ran = None  # the guest is booting
        if ran is not None:
            return ran
        await bench.pass_time(STEP)
    raise AssertionError(f"{name} was still running after {STEPS * STEP}")


async def test_a_program_runs_once_for_each_start_and_what_came_of_it_is_kept(
    bench: Bench, driver: FullDriver
) -> None:
    """By the machine, not by the driver: another one knows of it too. One boot for all of it."""
    commands, ref = await _commands(bench, driver)
    first = await _ended(bench, commands, ref, "preStart", FAILURE)
    assert (first.name, first.code, first.digest) == ("preStart", 1, FAILURE.digest)
    assert await _ended(bench, commands, ref, "preStart", FAILURE) == first

    other = bench.connect()
    assert isinstance(other, GuestCommands)
    assert await _ended(bench, other, ref, "preStart", FAILURE) == first
    seen = await other.observe(ref)
    assert seen is not None
    assert seen.ran == (first,)

    mended = await _ended(bench, commands, ref, "preStart", SUCCESS)
    assert (mended.code, mended.digest) == (0, SUCCESS.digest)

    noted = Ran("preStop", "d", 124, "it took too long")
    await commands.note_ran(ref, noted)
    assert (seen := await driver.observe(ref))
    assert set(seen.ran) == {mended, noted}
    await commands.forget_ran(ref, "preStop")
    assert (seen := await driver.observe(ref))
    assert seen.ran == (mended,)

    await bench.after(driver.set_power(ref, Power.OFF, force=True), driver, ref)
    again = await bench.after(driver.set_power(ref, Power.ON), driver, ref)
    assert again is not None
    assert again.ran == (), "a new start knows nothing of the last one"


async def test_what_was_begun_is_known_and_is_begun_anew_once_it_is_forgotten(
    bench: Bench, driver: FullDriver
) -> None:
    """Also when nobody saw it end: what was begun for one stop is not for the next."""
    commands, ref = await _commands(bench, driver)
    await _ended(bench, commands, ref, "preStart", SUCCESS)
    assert await commands.run_once(ref, "preStop", ENDLESS) is None
    assert (seen := await bench.connect().observe(ref))
    assert (seen.under_way, [each.name for each in seen.ran]) == (("preStop",), ["preStart"])

    await commands.forget_ran(ref, "preStop")
    assert (seen := await driver.observe(ref))
    assert (seen.under_way, [each.name for each in seen.ran]) == ((), ["preStart"])
    again = await _ended(bench, commands, ref, "preStop", FAILURE)
    assert (again.code, again.digest) == (1, FAILURE.digest), "not what the first one made of it"


async def test_nothing_runs_in_a_machine_that_is_off(bench: Bench, driver: FullDriver) -> None:
    """Whoever asks has to look again."""
    if Capability.GUEST_COMMANDS not in driver.capabilities:
        pytest.skip("runs no programs in guests")
    assert isinstance(driver, GuestCommands)
    plan = bench.plan()
    await bench.created(driver, plan)
    with pytest.raises(Busy) as busy:
        await driver.run_once(plan.ref, "preStart", SUCCESS)
    assert busy.value.reason == "NotRunning"
