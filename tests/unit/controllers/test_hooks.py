"""Hooks of a machine on a simulated host: once for each start, and never in anybody's way."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from novacron.controllers.requests import Requests
from novacron.controllers.restarts import Restarts
from novacron.controllers.round import Scope
from novacron.core.hooks import GuestProgram, Hook, HttpRequest
from novacron.core.machine import MachineRef, Observed, Power, Resources
from novacron.drivers.simulation import Fault, Operation, SimulatedHost, SimulationDriver
from unit.controllers.stage import Diary

SLOW = GuestProgram(("sleep", "20"))
FAILING = GuestProgram(("/bin/false",))
HASTY = GuestProgram(("sleep", "20"), timedelta(seconds=5))


class Booting(SimulationDriver):
    """A host whose guests never get as far as to have an address."""

    async def observe(self, ref: MachineRef) -> Observed | None:
        """Return what is there, as long as nobody can ask it."""
        seen = await super().observe(ref)
        return seen and replace(seen, addresses=())


def booting(directory: Path) -> Diary:
    """Return a world in which machines can never be asked."""
    world = Diary(directory)
    world.driver = Booting(directory / "world.db", world.host, clock=lambda: world.now)
    return world


@pytest.fixture
def world(tmp_path: Path) -> Diary:
    """A host with room."""
    return Diary(tmp_path)


async def test_a_machine_is_ready_when_its_pre_start_has_ended(world: Diary) -> None:
    """It runs all the while, and each round returns at once."""
    world.hooks(SLOW)
    done = await world.round()
    assert done.seen is not None
    assert done.seen.power is Power.ON
    assert (world.ready.status, world.ready.reason) == ("False", "HookRunning")
    await world.pass_by(19)
    assert world.ready.reason == "HookRunning"
    await world.pass_by(2)
    assert world.ready.status == "True"


async def test_it_is_done_once_for_each_start(world: Diary) -> None:
    """Also when another operator comes, which remembers nothing; and again after a stop."""
    world.hooks(SLOW)
    await world.round()
    await world.pass_by(21)
    world.machine = replace(world.machine, conditions=())
    await world.round()
    assert world.ready.status == "True"
    world.change(power=Power.OFF)
    await world.round()
    world.change(power=Power.ON)
    await world.round()
    assert world.ready.reason == "HookRunning"


async def test_one_that_fails_is_told_and_not_repeated_until_it_is_another(world: Diary) -> None:
    """Whoever mends the hook need not restart the machine."""
    world.hooks(FAILING)
    await world.round()
    assert (world.ready.reason, world.ready.message) == ("HookFailed", "preStart ended with 1")
    await world.pass_by(3)
    assert world.ready.reason == "HookFailed"
    world.hooks(GuestProgram(("/bin/true",)))
    await world.round()
    assert world.ready.status == "True"
    world.hooks(FAILING)
    await world.round()
    assert world.ready.status == "True", "this start had its hook"


async def test_one_that_takes_too_long_has_failed(world: Diary) -> None:
    """Else nobody would ever know."""
    world.hooks(HASTY)
    await world.round()
    await world.pass_by(7)
    assert world.ready.message == "preStart did not end within 5 s"


async def test_a_request_has_all_its_time_once_the_machine_can_be_asked(tmp_path: Path) -> None:
    """A guest that boots slowly, or waits for its network, has not failed."""
    world = booting(tmp_path)
    world.hooks(HttpRequest(8080, timeout=timedelta(seconds=5)))
    await world.round()
    await world.pass_by(120)
    told = (world.ready.reason, world.ready.message)
    assert told == ("HookRunning", "preStart waits: the machine has no address yet")


async def test_a_machine_without_address_is_stopped_when_its_pre_stop_has_had_its_time(
    tmp_path: Path,
) -> None:
    """It cannot be asked, and its owner wants it off."""
    world = booting(tmp_path)
    world.hooks(pre_stop=HttpRequest(8080, timeout=timedelta(seconds=5)))
    await world.round()
    world.change(power=Power.OFF)
    done = await world.pass_by(4)
    assert done.seen is not None
    assert done.seen.power is Power.ON
    done = await world.pass_by(3)
    assert done.seen is not None
    assert done.seen.power is Power.OFF


async def test_a_guest_that_dies_in_its_hook_is_not_started_over_and_over(world: Diary) -> None:
    """It was up, so it died; the pause before the next start grows."""
    world.hooks(SLOW)
    done = await world.round()
    assert done.seen is not None
    dead = replace(done.seen, power=Power.OFF, ended="it crashed")
    scope = Scope(
        *(world.machine, world.driver, dead, lambda: None, world.now, timedelta(0)),
        *(Restarts(), Requests(), lambda *_: None, lambda: None),
    )
    assert scope.died


async def test_a_machine_stops_when_its_pre_stop_has_ended(world: Diary) -> None:
    """And not before."""
    world.hooks(pre_stop=SLOW)
    await world.round()
    world.change(power=Power.OFF)
    done = await world.round()
    assert done.seen is not None
    assert done.seen.power is Power.ON
    assert world.ready.reason == "HookRunning"
    done = await world.pass_by(21)
    assert done.seen is not None
    assert done.seen.power is Power.OFF


@pytest.mark.parametrize(
    ("hook", "seconds", "told"),
    [
        (FAILING, 0, "preStop ended with 1; it is stopped all the same"),
        (HASTY, 6, "preStop did not end within 5 s; it is stopped all the same"),
    ],
    ids=["failing", "endless"],
)
async def test_whatever_comes_of_pre_stop_the_machine_stops(
    world: Diary, hook: Hook, seconds: int, told: str
) -> None:
    """Its owner wants it off."""
    world.hooks(pre_stop=hook)
    await world.round()
    world.change(power=Power.OFF)
    done = await world.round()
    happened = list(done.happened)
    for _ in range(seconds):
        done = await world.pass_by(1)
        happened += done.happened
    assert done.seen is not None
    assert done.seen.power is Power.OFF
    assert told in [each.message for each in happened]


async def test_a_guest_that_cannot_be_asked_is_waited_for_no_longer_than_its_hook_may_take(
    tmp_path: Path,
) -> None:
    """A guest without an agent must not run for ever."""
    silent = Fault(Operation.COMMAND, "Busy")  # as if the agent in the guest did not answer
    world = Diary(tmp_path, SimulatedHost("a", Resources(8, 8192, 99999), faults=(silent,)))
    world.hooks(pre_stop=HASTY)
    await world.round()
    world.change(power=Power.OFF)
    await world.round()
    done = await world.pass_by(4)
    assert done.seen is not None
    assert done.seen.power is Power.ON
    done = await world.pass_by(2)
    assert done.seen is not None
    assert done.seen.power is Power.OFF


async def test_a_stop_that_is_taken_back_leaves_the_hook_for_the_next_one(world: Diary) -> None:
    """What was done for one stop is not done for another."""
    world.hooks(pre_stop=SLOW)
    await world.round()
    world.change(power=Power.OFF)
    await world.round()
    world.change(power=Power.ON)
    await world.pass_by(21)
    assert world.ready.status == "True"
    world.change(power=Power.OFF)
    await world.round()
    assert world.ready.reason == "HookRunning"


async def test_a_stop_that_is_taken_back_early_leaves_all_of_the_hook_for_the_next_one(
    world: Diary,
) -> None:
    """What was begun for one stop, and ended when nobody looked, was not done for another."""
    world.hooks(pre_stop=SLOW)
    await world.round()
    world.change(power=Power.OFF)
    await world.round()
    world.change(power=Power.ON)
    await world.pass_by(10)
    assert world.ready.status == "True"
    world.change(power=Power.OFF)
    done = await world.pass_by(15)
    assert done.seen is not None
    assert done.seen.power is Power.ON
    assert world.ready.reason == "HookRunning"


async def test_a_machine_that_is_deleted_has_its_pre_stop_first(world: Diary) -> None:
    """It is a stop like any other."""
    world.hooks(pre_stop=SLOW)
    await world.round()
    world.change(deleting=True)
    done = await world.round()
    assert done.outcomes["Removed"].reason == "HookRunning"
    done = await world.pass_by(21)
    assert done.settled
    assert done.seen is None
