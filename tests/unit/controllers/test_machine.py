"""The steps of a machine, on a simulated host with a clock of the test's own."""

from dataclasses import astuple, replace
from datetime import timedelta
from pathlib import Path

import pytest

from novacron.controllers.reconciler import MachineReconciler
from novacron.core.conditions import Condition
from novacron.core.driver import Accepted
from novacron.core.machine import Hindrance, MachineRef, Observed, Power, Resources
from novacron.core.report import Phase, phase_of, ready_of
from novacron.core.steps import Blocked, Done, Wait
from novacron.drivers.simulation import Delays, Fault, Operation, SimulatedHost, SimulationDriver
from unit.controllers.stage import SIZE, World

SLOW = timedelta(seconds=30)
DELAYS = Delays(create=SLOW, start=SLOW, stop=SLOW, resize=SLOW, delete=SLOW)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A fast host with room."""
    return World(tmp_path)


@pytest.fixture
def slow_world(tmp_path: Path) -> World:
    """A host on which everything takes half a minute."""
    return World(tmp_path, SimulatedHost("a", Resources(8, 8192, 99999), delays=DELAYS))


def broken_world(tmp_path: Path, *faults: Fault) -> World:
    """A host that fails in some way."""
    return World(tmp_path, SimulatedHost("a", Resources(8, 8192, 99999), faults=faults))


async def test_a_fast_host_is_done_in_one_round(world: World) -> None:
    """Creating, sizing and starting need no second look when nothing takes time."""
    done = await world.round()
    assert done.settled
    assert done.seen is not None
    assert done.seen.power is Power.ON
    assert [happening.reason for happening in done.happened] == ["Created", "Started"]


async def test_a_second_round_does_nothing(world: World) -> None:
    """A step run twice equals once."""
    first = await world.round()
    second = await world.round()
    assert second.happened == ()
    assert second.outcomes == first.outcomes
    assert second.seen == first.seen


async def test_a_machine_of_which_nothing_is_written_is_made_without_a_look(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each order is followed by one; only the next round begins with one."""
    looks: list[MachineRef] = []
    observe = SimulationDriver.observe

    async def counted(self: SimulationDriver, ref: MachineRef) -> Observed | None:
        looks.append(ref)
        return await observe(self, ref)

    monkeypatch.setattr(SimulationDriver, "observe", counted)
    await world.round()
    assert len(looks) == len(["created", "started"])
    await world.round()
    assert len(looks) == len(["created", "started", "the next round"])


async def test_a_machine_whose_status_was_wiped_is_found_and_not_made_again(world: World) -> None:
    """Whoever is told to make one that is there makes no other."""
    first = await world.round()
    world.reconciler = MachineReconciler(world, now=lambda: world.now)
    again = await world.round()
    assert again.settled
    assert again.seen == first.seen
    assert [seen.uid for seen in await world.driver.machines("a")] == [world.machine.uid]


async def test_slow_operations_are_waited_for_and_not_ordered_again(slow_world: World) -> None:
    """Each wait says when it is due, so nothing polls."""
    first = await slow_world.round()
    assert first.outcomes["Created"] == Wait("Creating", SLOW, "being created on host a")
    again = await slow_world.round()
    assert again.happened == ()
    slow_world.now += SLOW
    starting = await slow_world.round()
    assert starting.outcomes["Powered"].reason == "Starting"
    assert (await slow_world.settle()).settled


async def test_a_resize_follows_what_is_reserved_not_what_is_wanted(world: World) -> None:
    """The placer's word counts."""
    await world.settle()
    bigger = Resources(4, 2048, 10240)
    world.change(wanted=bigger)
    assert (await world.round()).happened == ()
    world.change(reserved=bigger)
    done = await world.settle()
    assert done.seen is not None
    assert done.seen.resources == bigger


async def test_a_host_without_room_after_all_is_reported_as_refused(tmp_path: Path) -> None:
    """Then nothing exists there, and the placer may choose another."""
    world = broken_world(tmp_path, Fault(Operation.CREATE, "OutOfCapacity", message="full"))
    done = await world.round()
    assert done.refused
    assert done.outcomes["Created"] == Wait("HostFull", None, "full")
    assert await world.driver.observe(world.machine.ref) is None


async def test_a_rejected_machine_waits_for_its_owner(tmp_path: Path) -> None:
    """Nothing is due by itself."""
    world = broken_world(tmp_path, Fault(Operation.CREATE, "Rejected", message="bad image"))
    done = await world.round()
    assert done.outcomes["Created"] == Blocked("Rejected", "bad image")
    assert done.look_again is None


async def test_a_machine_is_stopped_whatever_else_of_it_is_refused(tmp_path: Path) -> None:
    """Its owner need not mend what is wrong with it first."""
    refuses = Fault(Operation.RESIZE, "Rejected", message="no such network")
    world = broken_world(tmp_path, refuses)
    await world.settle()
    world.change(reserved=replace(SIZE, vcpus=4))
    blocked = (await world.settle()).outcomes["Configured"]
    assert isinstance(blocked, Blocked)
    world.change(power=Power.OFF)
    done = await world.settle()
    assert isinstance(done.outcomes["Powered"], Done)
    assert done.outcomes["Configured"] == blocked
    assert done.seen is not None
    assert done.seen.power is Power.OFF


async def test_an_unreachable_host_is_asked_again_later(tmp_path: Path) -> None:
    """Nobody knows what became of the machine, so nothing is done to it."""
    world = broken_world(tmp_path, Fault(Operation.OBSERVE, "Unreachable", message="no route"))
    done = await world.round()
    assert done.outcomes["Created"].reason == "HostUnreachable"
    assert done.seen is None


async def test_a_host_known_to_be_down_is_not_even_asked(world: World) -> None:
    """A thousand machines of a dead host cost nothing."""
    await world.settle()
    world.down = "no route"
    done = await world.round()
    assert done.outcomes == {"Created": Wait("HostUnreachable", timedelta(seconds=60), "no route")}


async def test_a_host_that_is_not_declared_any_more_blocks_its_machines(world: World) -> None:
    """Removing the machine would need the host."""
    world.change(host="b", deleting=True)
    done = await world.round()
    assert done.outcomes["Removed"].reason == "HostUnknown"
    assert not done.settled


async def test_deletion_leaves_nothing(slow_world: World) -> None:
    """Also when it takes a while, and when it is asked for again."""
    await slow_world.settle()
    slow_world.change(deleting=True)
    waiting = await slow_world.round()
    assert waiting.outcomes["Removed"].reason == "Removing"
    assert (await slow_world.settle()).settled
    assert await slow_world.driver.observe(slow_world.machine.ref) is None
    again = (await slow_world.round()).outcomes
    assert again["Removed"] == Done("Removed", "nothing of it is left")


async def test_an_owner_who_changes_their_mind_midway_gets_the_last_word(slow_world: World) -> None:
    """Stop while it starts: busy first, then stopped."""
    await slow_world.round()
    slow_world.now += SLOW
    await slow_world.round()
    slow_world.change(power=Power.OFF)
    done = await slow_world.settle()
    assert done.seen is not None
    assert done.seen.power is Power.OFF
    assert done.seen.resources == replace(SIZE)


async def test_a_guest_that_stands_still_is_told_of_once_and_goes_on_when_it_can(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not ready meanwhile, and nobody starts it anew."""
    await world.settle()
    full = Hindrance("GuestPaused", "pool a is full")
    standing, orders = [full], []
    observe, set_power = SimulationDriver.observe, SimulationDriver.set_power

    async def seen(self: SimulationDriver, ref: MachineRef) -> Observed | None:
        found = await observe(self, ref)
        return replace(found, hindered=standing[0] if standing else None) if found else None

    async def ordered(
        self: SimulationDriver, ref: MachineRef, want: Power, *, force: bool = False
    ) -> Accepted:
        orders.append(want)
        return await set_power(self, ref, want, force=force)

    monkeypatch.setattr(SimulationDriver, "observe", seen)
    monkeypatch.setattr(SimulationDriver, "set_power", ordered)
    done = await world.round()
    assert [each.reason for each in done.happened] == ["GuestPaused"]
    ready = ready_of(world.machine, done.outcomes, done.seen)
    assert (ready.status, ready.reason, ready.message) == ("False", *astuple(full))
    assert phase_of(world.machine, done.seen, done.outcomes) is Phase.FAILED
    assert orders == [], "not at once: it may stand still again and again"
    claim = Condition("Powered", "Unknown", full.reason, full.message, world.now, world.now)
    world.change(conditions=(claim,))
    world.now += timedelta(seconds=10)
    assert (await world.round()).happened == ()
    assert orders == [Power.ON]
    standing.clear()
    assert (await world.round()).settled


async def test_a_guest_that_stands_still_ever_again_is_asked_to_go_on_ever_less_often(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a quota is full the pool seems to have room, and every try is in vain."""
    await world.settle()
    standing = [True]
    observe, set_power = SimulationDriver.observe, SimulationDriver.set_power

    async def seen(self: SimulationDriver, ref: MachineRef) -> Observed | None:
        found = await observe(self, ref)
        full = Hindrance("GuestPaused", "pool a is full") if standing[0] else None
        return replace(found, hindered=full) if found else None

    async def ordered(
        self: SimulationDriver, ref: MachineRef, want: Power, *, force: bool = False
    ) -> Accepted:
        standing[0] = False
        return await set_power(self, ref, want, force=force)

    monkeypatch.setattr(SimulationDriver, "observe", seen)
    monkeypatch.setattr(SimulationDriver, "set_power", ordered)
    pauses = []
    for _ in range(4):
        standing[0] = True
        done = await world.round()
        assert done.look_again is not None
        pauses.append(done.look_again.total_seconds())
        world.now += done.look_again
        gone_on = await world.round()
        assert [each.reason for each in gone_on.happened] == ["Resumed"]
    assert pauses == [1, 2, 4, 8]
