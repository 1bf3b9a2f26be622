"""Machines whose hosts are lost: amid moves, and when they are to begin anew."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from novacron.controllers.summary import summarise
from novacron.core.errors import Busy, Unreachable
from novacron.core.machine import MachinePlan, MachineRef, Observed, Power, Resources
from novacron.core.migration import Luggage
from novacron.core.move import MoveProgress, MoveResult
from novacron.core.steps import Wait
from novacron.drivers.simulation import Fault, Operation, SimulatedHost, SimulationDriver
from novacron.runtime.errors import LeaseLost
from unit.controllers.pair import ROOM, SLOW, Hosts


async def test_a_machine_of_a_host_that_is_off_begins_anew_on_another(hosts: Hosts) -> None:
    """Nothing is asked of the old host; what it has is removed when it is back."""
    hosts.lose("a")
    hosts.order(live=False, lost=True)
    await hosts.settle()
    await hosts.settle()
    assert hosts.machine.host == "b"
    assert hosts.machine.leftovers == {"a"}
    assert sorted(hosts.where()) == [("a", Power.ON), ("b", Power.ON)]
    del hosts.silent["a"]
    await hosts.settle()
    assert hosts.machine.leftovers == frozenset()
    assert hosts.where() == [("b", Power.ON)]


@pytest.mark.parametrize("begun", [False, True])
async def test_a_machine_whose_host_is_back_gets_no_twin(hosts: Hosts, *, begun: bool) -> None:
    """It is decided by what is so when it would begin, not by what was when that was decided."""
    hosts.lose("a")
    hosts.order(live=False, lost=True)
    if begun:
        await hosts.round()  # which is only written down as yet
    hosts.answer("a")
    await hosts.round()
    last = hosts.machine.last_move
    assert last is not None
    assert (last.result, last.reason) == (MoveResult.FAILED, "HostBack")
    assert last.message == "host a answers again, or is not fenced any more"
    await hosts.settle()
    assert (hosts.machine.host, hosts.machine.leftovers) == ("a", frozenset())
    assert hosts.where() == [("a", Power.ON)]


async def test_a_machine_is_not_begun_anew_while_its_silent_host_is_not_fenced(
    hosts: Hosts,
) -> None:
    """Somebody took back what they had said of the host: it may well run."""
    hosts.lose("a")
    hosts.order(live=False, lost=True)
    hosts.fenced.discard("a")
    await hosts.round()
    assert hosts.machine.last_move is not None
    assert hosts.machine.last_move.reason == "HostBack"
    assert hosts.where() == [("a", Power.ON)]


async def test_what_was_begun_anew_goes_on_when_the_lost_host_is_back(hosts: Hosts) -> None:
    """It is there by then, and the other one is what is removed."""
    hosts.lose("a")
    hosts.order(live=False, lost=True)
    await hosts.round()
    await hosts.round()
    assert ("b", Power.OFF) in hosts.where()
    hosts.answer("a")
    await hosts.settle()
    await hosts.settle()
    assert hosts.machine.host == "b"
    assert hosts.where() == [("b", Power.ON)]


async def test_a_move_whose_source_is_off_is_given_up_when_nothing_came(hosts: Hosts) -> None:
    """What may be left where it was to go is on record, and whoever places it decides anew."""
    await hosts.set_off()
    hosts.lose("a")
    await hosts.round()
    last = hosts.machine.last_move
    assert last is not None
    assert (last.result, last.reason) == (MoveResult.FAILED, "HostLost")
    assert (hosts.machine.host, hosts.machine.leftovers) == ("a", {"b"})


class FallsSilent(SimulationDriver):
    """A host that loses its power between two questions."""

    def __init__(self, hosts: Hosts) -> None:
        super().__init__(
            hosts.directory / "world.db", SimulatedHost("a", ROOM), clock=lambda: hosts.now
        )
        self._hosts = hosts

    async def pack(self, ref: MachineRef) -> Luggage:
        self._hosts.lose(ref.host)
        raise Unreachable(f"host {ref.host} does not answer: Broken pipe")


async def test_a_move_whose_source_falls_silent_in_its_first_moment_is_not_over(
    hosts: Hosts,
) -> None:
    """Nobody says that the machine stays on a host that cannot be asked."""
    hosts.order()
    await hosts.round()
    hosts.drivers["a"] = FallsSilent(hosts)
    done = await hosts.round()
    assert (done.outcomes["Moved"].reason, done.seen) == ("HostUnreachable", None)
    assert hosts.machine.move is not None
    await hosts.round()
    last = hosts.machine.last_move
    assert last is not None
    assert (last.result, last.reason) == (MoveResult.FAILED, "HostLost")
    assert hosts.machine.unreached == {"b"}


async def test_a_machine_that_stayed_may_begin_anew_where_it_did_not_get_to(hosts: Hosts) -> None:
    """Its move had failed because that host was away, which had not been cleared since."""
    await hosts.set_off()
    hosts.silent["b"] = "no route"
    await hosts.drivers["a"].cancel_move(hosts.machine.ref)
    await hosts.round()
    last = hosts.machine.last_move
    assert last is not None
    assert (last.result, last.reason) == (MoveResult.FAILED, "TargetUnreachable")
    assert (hosts.machine.leftovers, hosts.machine.unreached) == ({"b"}, {"b"})
    hosts.answer("b")
    await hosts.settle()
    assert (hosts.machine.leftovers, hosts.machine.unreached) == (frozenset(), frozenset())


async def test_a_machine_that_came_before_its_source_was_lost_is_its_targets(hosts: Hosts) -> None:
    """Nobody noticed that it came, and yet it is not begun anew."""
    await hosts.set_off()
    hosts.now += 2 * SLOW
    hosts.lose("a")
    await hosts.settle()
    last = hosts.machine.last_move
    assert last is not None
    assert (last.result, last.reason) == (MoveResult.SUCCEEDED, "")
    assert (hosts.machine.host, hosts.machine.leftovers) == ("b", {"a"})


async def test_a_machine_that_may_have_come_to_a_silent_host_is_given_up_by_nobody(
    hosts: Hosts,
) -> None:
    """Not even where its source is off: it could be started twice."""
    await hosts.set_off()
    hosts.now += 2 * SLOW
    hosts.lose("a")
    hosts.silent["b"] = "no route"
    done = await hosts.round()
    moved = done.outcomes["Moved"]
    assert isinstance(moved, Wait)
    assert moved.reason == "HostUnreachable"
    assert "no route; it may run there, so it is started nowhere else" in moved.message
    assert hosts.machine.move is not None
    del hosts.silent["b"]
    await hosts.settle()
    assert hosts.machine.host == "b"


async def test_a_move_between_two_hosts_that_are_off_is_given_up(hosts: Hosts) -> None:
    """Nothing of it runs on either."""
    await hosts.set_off()
    hosts.lose("a")
    hosts.lose("b")
    await hosts.round()
    assert hosts.machine.last_move is not None
    assert hosts.machine.last_move.reason == "HostLost"
    assert hosts.machine.leftovers == {"b"}


async def test_a_host_that_falls_silent_before_a_machine_was_begun_there_is_given_up(
    hosts: Hosts,
) -> None:
    """Nothing was asked of it, so another one may be."""
    hosts.lose("a")
    hosts.silent["b"] = "no route"
    hosts.order(live=False, lost=True)
    await hosts.round()
    last = hosts.machine.last_move
    assert last is not None
    assert (last.result, last.reason) == (MoveResult.FAILED, "TargetUnreachable")
    assert hosts.machine.leftovers == frozenset()


async def test_a_host_that_falls_silent_after_a_machine_was_begun_there_is_waited_for(
    hosts: Hosts,
) -> None:
    """Until it answers, or is known to be off: then what it may have is on record."""
    hosts.lose("a")
    hosts.order(live=False, lost=True)
    await hosts.round()
    hosts.silent["b"] = "no route"
    done = await hosts.round()
    assert done.outcomes["Moved"].reason == "HostUnreachable"
    assert hosts.machine.move is not None
    hosts.lose("b")
    await hosts.round()
    last = hosts.machine.last_move
    assert last is not None
    assert (last.result, last.reason) == (MoveResult.FAILED, "TargetUnreachable")
    assert (hosts.machine.host, hosts.machine.leftovers) == ("a", {"b"})


async def test_what_a_host_refused_to_begin_anew_leaves_nothing_there(tmp_path: Path) -> None:
    """It may begin on another one after that."""
    full = Fault(Operation.CREATE, "OutOfCapacity", message="host b is full")
    hosts = Hosts(tmp_path, faults=(full,))
    await hosts.settle()
    hosts.lose("a")
    hosts.order(live=False, lost=True)
    await hosts.round()
    await hosts.round()
    last = hosts.machine.last_move
    assert last is not None
    assert (last.result, last.reason) == (MoveResult.FAILED, "HostFull")
    assert hosts.machine.leftovers == frozenset()
    assert hosts.where() == [("a", Power.ON)]


class Hasty(SimulationDriver):
    """A host that takes so long to answer that the guest has come when it does."""

    def __init__(self, hosts: Hosts) -> None:
        host = SimulatedHost("a", ROOM, delays=hosts.delays)
        super().__init__(
            hosts.directory / "world.db", host, clock=lambda: hosts.now, random=lambda: 0.0
        )
        self.hosts = hosts
        self.falls_silent = False

    async def observe(self, ref: MachineRef) -> Observed | None:
        """Answer when the move is over, or fall silent by then."""
        self.hosts.now += 2 * SLOW
        if self.falls_silent:
            raise Unreachable("no route")
        return await super().observe(ref)


@pytest.mark.parametrize("falls_silent", [False, True])
@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_guest_that_comes_while_its_old_host_is_asked_is_seen_to_have_come(
    hosts: Hosts, *, falls_silent: bool, cancelled: bool
) -> None:
    """What the new host said before that would have cost the only guest."""
    await hosts.set_off()
    hosts.drivers["a"] = hasty = Hasty(hosts)
    hosts.machine = replace(hosts.machine, move_cancelled=cancelled)
    if falls_silent:
        hosts.fenced.add("a")
        hasty.falls_silent = True
    await hosts.settle()
    assert hosts.machine.host == "b"
    assert hosts.where() == [("b", Power.ON)]


async def test_nothing_is_done_for_a_move_before_it_is_written_down_that_it_begins(
    hosts: Hosts,
) -> None:
    """Whoever replaces the object then takes the only record of it away."""
    hosts.order()
    await hosts.round()
    assert hosts.machine.last_move is not None
    assert hosts.machine.last_move.started == hosts.now
    here = await hosts.drivers["a"].observe(hosts.machine.ref)
    assert here is not None
    assert not here.changing


async def test_a_machine_that_left_for_a_host_which_is_off_now_is_that_hosts(hosts: Hosts) -> None:
    """So it is looked for another host as any machine of a lost one."""
    await hosts.set_off()
    hosts.now += 2 * SLOW
    hosts.lose("b")
    await hosts.round()
    assert (hosts.machine.host, hosts.machine.move) == ("b", None)
    assert hosts.machine.leftovers == {"a"}


class TakesIn(SimulationDriver):
    """A host that tells which machines it made its own."""

    def __init__(self, hosts: Hosts) -> None:
        super().__init__(
            hosts.directory / "world.db", SimulatedHost("b", ROOM), clock=lambda: hosts.now
        )
        self.taken_in: list[str] = []

    async def arrived(self, plan: MachinePlan, luggage: Luggage | None) -> MoveProgress:
        self.taken_in.append(plan.ref.host)
        return await super().arrived(plan, luggage)


async def test_a_machine_that_came_unnoticed_is_found_when_its_hosts_are_back(hosts: Hosts) -> None:
    """Its old host is not to make it anew from what it still has of its disks.

    And its new one makes it its own, as if somebody had seen it come.
    """
    hosts.drivers["b"] = target = TakesIn(hosts)
    await hosts.set_off()
    hosts.now += 2 * SLOW
    hosts.lose("a")
    hosts.lose("b")
    await hosts.round()
    assert (hosts.machine.host, hosts.machine.unreached) == ("a", {"b"})
    hosts.answer("a")
    done = await hosts.round()
    assert "it may be on host b" in done.outcomes["Moved"].message
    assert hosts.where() == [("b", Power.ON)]
    hosts.answer("b")
    await hosts.settle()
    assert (hosts.machine.host, hosts.machine.unreached) == ("b", frozenset())
    assert hosts.where() == [("b", Power.ON)]
    assert target.taken_in == ["b"]


async def test_a_machine_that_came_unnoticed_is_removed_from_where_it_is(hosts: Hosts) -> None:
    """And what it has there is kept or not as its owner wants."""
    await hosts.set_off()
    hosts.now += 2 * SLOW
    hosts.lose("a")
    hosts.lose("b")
    await hosts.round()
    hosts.answer("a")
    hosts.answer("b")
    hosts.machine = replace(hosts.machine, deleting=True)
    await hosts.round()
    assert hosts.machine.host == "b"
    for _ in range(5):
        done = await hosts.round()
    assert done.settled
    assert hosts.where() == []


async def test_nobody_says_of_a_machine_of_a_lost_host_that_it_runs(hosts: Hosts) -> None:
    """Not even for the moment in which its move is given up."""
    await hosts.set_off()
    hosts.lose("a")
    done = await hosts.round()
    report = summarise(hosts.machine, done, hosts.now, write_usage=False)
    ready = next(claim for claim in report.conditions if claim.type == "Ready")
    assert (ready.status, report.phase) == ("Unknown", None)


async def test_a_machine_that_is_forgotten_is_removed_from_hosts_that_answer(hosts: Hosts) -> None:
    """Only what is on the one that does not answer may be left."""
    hosts.lose("a")
    hosts.order(live=False, lost=True)
    await hosts.round()
    await hosts.round()
    assert ("b", Power.OFF) in hosts.where()
    gone = replace(hosts.machine, move=None, host="a", leftovers=frozenset({"b"}))
    hosts.machine = replace(gone, deleting=True, abandoned=True)
    done = await hosts.round()
    assert done.settled
    assert hosts.where() == [("a", Power.ON)]


async def test_a_machine_is_forgotten_only_of_a_host_that_somebody_switched_off(
    hosts: Hosts,
) -> None:
    """A guest of a host that is only silent may run on, and nobody would know of it any more."""
    await hosts.settle()
    hosts.silent["a"] = "no route"
    hosts.machine = replace(hosts.machine, deleting=True, abandoned=True)
    done = await hosts.round()
    assert (done.settled, done.outcomes["Removed"].reason) == (False, "HostUnreachable")
    hosts.fenced.add("a")
    done = await hosts.round()
    assert (done.settled, done.outcomes["Removed"].reason) == (True, "Abandoned")
    assert done.happened[0].message == (
        "forgotten as asked; what there may be of it on a was not removed"
    )


async def test_what_a_lost_host_still_has_keeps_no_machine_that_is_forgotten(hosts: Hosts) -> None:
    """It is removed from where it is, as any other; only the lost host is not waited for."""
    hosts.lose("a")
    hosts.order(live=False, lost=True)
    await hosts.settle()
    assert (hosts.machine.host, hosts.machine.leftovers) == ("b", {"a"})
    hosts.machine = replace(hosts.machine, deleting=True)
    done = await hosts.round()
    assert "what may be left of it on host a has to go first" in done.outcomes["Removed"].message
    hosts.machine = replace(hosts.machine, abandoned=True)
    for _ in range(5):
        done = await hosts.round()
    assert done.settled
    assert hosts.where() == [("a", Power.ON)]


async def test_what_a_host_has_that_cannot_be_used_is_not_forgotten(hosts: Hosts) -> None:
    """Somebody made a mistake in its declaration; guests run there all the same."""
    hosts.lose("a")
    hosts.order(live=False, lost=True)
    await hosts.settle()
    hosts.answer("a")
    hosts.unusable.add("a")
    for _ in range(3):
        await hosts.round()
        hosts.now += SLOW
    assert hosts.machine.leftovers == {"a"}
    before = hosts.machine
    hosts.machine = replace(before, deleting=True)
    done = await hosts.round()
    assert "host a has to go first: it cannot be used" in done.outcomes["Removed"].message
    hosts.machine = before
    hosts.unusable.clear()
    await hosts.round()
    assert hosts.machine.leftovers == frozenset()
    assert hosts.where() == [("b", Power.ON)]


async def test_a_machine_of_a_host_that_cannot_be_used_waits_for_that(hosts: Hosts) -> None:
    """Nothing is made of it anywhere else meanwhile."""
    await hosts.settle()
    hosts.unusable.add("a")
    done = await hosts.round()
    assert done.outcomes["Created"].reason == "HostUnreachable"
    assert "cannot be used as it is declared" in done.outcomes["Created"].message
    assert hosts.where() == [("a", Power.ON)]


@pytest.mark.parametrize("unseen", [False, True])
async def test_a_machine_that_nobody_saw_on_its_lost_host_begins_elsewhere(
    tmp_path: Path, *, unseen: bool
) -> None:
    """It had no disk there that could be out of reach, so it does not wait for one for ever."""
    hosts = Hosts(tmp_path)
    hosts.machine = replace(hosts.machine, unseen=unseen)
    hosts.lose("a")
    hosts.order(live=False, lost=True)
    await hosts.round()
    await hosts.round()
    last = hosts.machine.last_move
    assert last is not None
    assert last.reason == ("HostLost" if unseen else "DisksOutOfReach")
    assert hosts.machine.host == ("b" if unseen else "a")
    assert hosts.machine.leftovers == ({"a"} if unseen else set())
    assert [host for host, _ in hosts.where()] == (["b"] if unseen else [])


async def test_a_host_that_is_busy_is_asked_again_and_told_as_busy(hosts: Hosts) -> None:
    """A volume that is being filled is no failure of ours."""
    hosts.drivers["b"] = Occupied(hosts)
    hosts.lose("a")
    hosts.order(live=False, lost=True)
    await hosts.round()
    done = await hosts.round()
    moved = done.outcomes["Moved"]
    assert (moved.after, moved.message) == (
        timedelta(seconds=1),
        "moves from host a to b: a volume is being filled",
    )


class Occupied(SimulationDriver):
    """A host that has no time to tell which disks it reaches."""

    def __init__(self, hosts: Hosts) -> None:
        host = SimulatedHost("b", ROOM)
        super().__init__(
            hosts.directory / "world.db", host, clock=lambda: hosts.now, random=lambda: 0.0
        )

    async def out_of_reach(self, plan: MachinePlan) -> str | None:
        """Be busy."""
        del plan
        raise Busy("a volume is being filled")


class Packs(SimulationDriver):
    """A host that counts how often it is asked what a machine has."""

    def __init__(self, hosts: Hosts) -> None:
        super().__init__(
            hosts.directory / "world.db", SimulatedHost("b", ROOM), clock=lambda: hosts.now
        )
        self.packed = 0

    async def pack(self, ref: MachineRef) -> Luggage:
        self.packed += 1
        return await super().pack(ref)


async def test_a_lost_host_costs_those_who_left_it_nothing_while_it_is_away(hosts: Hosts) -> None:
    """There may be hundreds of them, and it may be away for weeks."""
    hosts.drivers["b"] = target = Packs(hosts)
    hosts.lose("a")
    hosts.order(live=False, lost=True)
    await hosts.settle()
    done = await hosts.settle()
    assert (hosts.machine.leftovers, target.packed) == ({"a"}, 0)
    assert done.look_again == timedelta(seconds=30)
    hosts.answer("a")
    await hosts.round()
    assert (hosts.machine.leftovers, target.packed) == (frozenset(), 1)


class HalfMade(SimulationDriver):
    """A host on which somebody died before a machine was whole."""

    def __init__(self, hosts: Hosts) -> None:
        super().__init__(
            hosts.directory / "world.db", SimulatedHost("b", ROOM), clock=lambda: hosts.now
        )
        self.out: str | None = None

    async def observe(self, ref: MachineRef) -> Observed | None:
        half = Observed(ref.uid, ref.name, Power.OFF, Resources(), changing="create")
        return await super().observe(ref) or replace(half, abandoned=True)

    async def out_of_reach(self, plan: MachinePlan) -> str | None:
        del plan
        return self.out


@pytest.mark.parametrize("back", [True, False])
async def test_a_machine_that_was_half_made_is_not_made_whole_whatever_came_between(
    hosts: Hosts, *, back: bool
) -> None:
    """Its host may run it again, and a disk that is gone by now must not be made anew."""
    hosts.drivers["b"] = target = HalfMade(hosts)
    hosts.lose("a")
    hosts.order(live=False, lost=True)
    await hosts.round()
    if back:
        hosts.answer("a")
    else:
        target.out = "its first disk"
    await hosts.round()
    last = hosts.machine.last_move
    assert last is not None
    why = "HostBack" if back else "DisksOutOfReach"
    assert (last.result, last.reason) == (MoveResult.FAILED, why)
    assert (hosts.machine.host, hosts.machine.unreached) == ("a", {"b"})
    assert hosts.where() == [("a", Power.ON)]


async def test_nothing_is_cleared_by_who_lost_the_right_to_while_he_asked(hosts: Hosts) -> None:
    """Another one has gone on since, and the machine may be there again."""
    hosts.lose("a")
    hosts.order(live=False, lost=True)
    await hosts.settle()
    hosts.answer("a")
    lost = LeaseLost("somebody else leads")

    class Slow(Packs):
        async def pack(self, ref: MachineRef) -> Luggage:
            hosts.lease = lost
            return await super().pack(ref)

    hosts.drivers["b"] = Slow(hosts)
    with pytest.raises(LeaseLost):
        await hosts.round()
    assert sorted(hosts.where()) == [("a", Power.ON), ("b", Power.ON)]
