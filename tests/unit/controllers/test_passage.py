"""A machine on its way between two simulated hosts, with a clock of the test's own."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

import pytest

from novacron.controllers.reconciler import MachineReconciler
from novacron.controllers.summary import summarise
from novacron.core.errors import Busy, DriverError, Rejected
from novacron.core.machine import MachineRef, Power
from novacron.core.migration import Luggage
from novacron.core.move import MoveReport, MoveResult
from novacron.core.report import Phase
from novacron.core.snapshot import Kept, SnapshotWishes
from novacron.drivers.simulation import Fault, Operation, SimulationDriver
from unit.controllers.pair import SLOW, Hosts


async def test_a_machine_moves_and_says_how_far_it_is(hosts: Hosts) -> None:
    """It runs all the while, and belongs to the new host only when it is there."""
    await hosts.set_off()
    hosts.now += SLOW / 2
    half = await hosts.round()
    report = summarise(hosts.machine, half, hosts.now, write_usage=False)
    assert (report.phase, report.host) == (Phase.MIGRATING, "a")
    assert report.move is not None
    assert 40 <= report.move.progress.percent <= 60
    ready = next(claim for claim in report.conditions if claim.type == "Ready")
    assert (ready.status, ready.reason) == ("True", "Migrating")
    await hosts.settle()
    last = hosts.machine.last_move
    assert last is not None
    assert (last.result, last.target, last.progress.percent) == (MoveResult.SUCCEEDED, "b", 100)
    assert hosts.machine.host == "b"
    assert hosts.where() == [("b", Power.ON)]


async def test_a_cancelled_move_leaves_the_machine_where_it_runs(hosts: Hosts) -> None:
    """And nothing where it did not go."""
    await hosts.set_off()
    hosts.now += SLOW / 2
    hosts.machine = replace(hosts.machine, move_cancelled=True)
    await hosts.settle()
    assert hosts.machine.last_move is not None
    assert hosts.machine.last_move.result is MoveResult.CANCELLED
    assert hosts.where() == [("a", Power.ON)]


async def test_a_process_that_knows_nothing_goes_on_with_a_move(hosts: Hosts) -> None:
    """Whatever is needed is at the hosts and in the record."""
    await hosts.set_off()
    hosts.drivers = {"a": hosts.driver("a"), "b": hosts.driver("b")}
    hosts.machine = replace(hosts.machine, last_move=None)
    await hosts.settle()
    assert hosts.where() == [("b", Power.ON)]


async def test_a_target_without_room_ends_the_move_with_its_reason(tmp_path: Path) -> None:
    """The guest runs where it ran."""
    full = Fault(Operation.MOVE, "OutOfCapacity", message="host b is full")
    hosts = Hosts(tmp_path, faults=(full,))
    await hosts.settle()
    hosts.order()
    await hosts.settle()
    last = hosts.machine.last_move
    assert last is not None
    assert (last.result, last.reason, last.message) == (
        MoveResult.FAILED,
        "HostFull",
        "host b is full",
    )
    assert hosts.where() == [("a", Power.ON)]


async def test_a_target_that_falls_silent_before_it_began_ends_the_move(hosts: Hosts) -> None:
    """What may be left there is removed when it answers again."""
    hosts.order()
    hosts.silent["b"] = "no route"
    await hosts.round()
    assert hosts.machine.last_move is not None
    assert hosts.machine.last_move.reason == "TargetUnreachable"
    assert hosts.where() == [("a", Power.ON)]


async def test_what_was_put_away_for_a_move_is_taken_out_again_though_the_target_is_silent(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever began with it may have died, and the machine stays where it is with all it has."""
    taken_out, trouble = list[str](), list[DriverError]([Busy("a volume is being filled")])

    async def cancel_move(_: SimulationDriver, ref: MachineRef) -> None:
        if trouble:
            raise trouble.pop()
        taken_out.append(ref.host)

    monkeypatch.setattr(SimulationDriver, "cancel_move", cancel_move)
    hosts.order()
    hosts.machine = replace(
        hosts.machine, last_move=MoveReport("1", "a", "b", started=hosts.now), power=Power.ON
    )
    hosts.silent["b"] = "no route"
    done = await hosts.round()
    assert done.outcomes["Moved"].message.endswith("a volume is being filled")
    await hosts.round()
    assert hosts.machine.last_move is not None
    assert hosts.machine.last_move.reason == "TargetUnreachable"
    assert taken_out == ["a"]


async def test_a_machine_that_is_to_go_does_not_wait_for_the_disk_that_it_came_with(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The storage of its new host may be gone for good, and nobody needs what is on it."""

    async def no_disk(_driver: SimulationDriver, *_: object) -> NoReturn:
        raise Busy("its first disk is not there", reason="DiskLost")

    await hosts.set_off()
    hosts.now += 2 * SLOW
    monkeypatch.setattr(SimulationDriver, "arrived", no_disk)
    done = await hosts.round()
    assert done.outcomes["Moved"].reason == "DiskLost"
    monkeypatch.setattr(SimulationDriver, "pack", no_disk)
    hosts.machine = replace(hosts.machine, deleting=True)
    for _ in range(5):
        done = await hosts.round()
        hosts.now += SLOW
    assert done.settled
    assert hosts.where() == []


async def test_nothing_goes_anywhere_of_a_machine_whose_snapshots_are_protected(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its new host may tell of none while they are put away, and the old one may have them."""

    async def no_disk(_driver: SimulationDriver, *_: object, **__: object) -> NoReturn:
        raise Rejected("its first disk is not there", reason="DiskLost")

    await hosts.set_off()
    hosts.now += 2 * SLOW
    monkeypatch.setattr(SimulationDriver, "clear_out", no_disk)
    await hosts.round()
    assert (hosts.machine.host, hosts.machine.leftovers) == ("b", {"a"})
    monkeypatch.setattr(SimulationDriver, "pack", no_disk)
    before = hosts.where()
    kept = (Kept("one", hosts.now),)
    wishes = SnapshotWishes(kept=kept, protect=True)
    hosts.machine = replace(hosts.machine, deleting=True, snapshots=wishes)
    for _ in range(3):
        done = await hosts.round()
        hosts.now += SLOW
        assert done.outcomes["Removed"].reason == "SnapshotsProtected"
    assert hosts.where() == before
    hosts.machine = replace(hosts.machine, snapshots=replace(wishes, unwanted=frozenset({"one"})))
    for _ in range(3):
        done = await hosts.round()
        hosts.now += SLOW
    assert done.settled
    assert hosts.where() == []


async def test_a_machine_that_cannot_be_packed_stays_all_the_same(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Why it cannot may be why it does not go."""

    async def pack(_: SimulationDriver, ref: MachineRef) -> Luggage:
        raise Rejected(f"host {ref.host} does not know what it is")

    monkeypatch.setattr(SimulationDriver, "pack", pack)
    hosts.order()
    for _ in range(3):
        await hosts.round()
    assert hosts.machine.move is None
    assert hosts.where() == [("a", Power.ON)]


async def test_a_source_that_falls_silent_is_waited_for(hosts: Hosts) -> None:
    """Nobody can tell whether the guest still runs there, so nothing is started elsewhere."""
    await hosts.set_off()
    hosts.silent["a"] = "no route"
    done = await hosts.round()
    assert done.outcomes["Moved"].reason == "HostUnreachable"
    assert hosts.machine.host == "a"
    del hosts.silent["a"]
    await hosts.settle()
    assert hosts.where() == [("b", Power.ON)]


async def test_a_machine_that_may_be_stopped_is_stopped_moved_and_started(hosts: Hosts) -> None:
    """Its new host starts it because its owner wants it to run."""
    hosts.order(live=False)
    await hosts.settle()
    await hosts.settle()
    assert hosts.where() == [("b", Power.ON)]
    assert hosts.machine.host == "b"


async def test_a_stopped_machine_moves_and_stays_off(hosts: Hosts) -> None:
    """A host is to be left by all of its machines."""
    hosts.machine = replace(hosts.machine, power=Power.OFF)
    await hosts.settle()
    hosts.order(live=False)
    await hosts.settle()
    await hosts.settle()
    assert hosts.where() == [("b", Power.OFF)]


async def test_a_deleted_machine_is_gone_from_both_hosts(hosts: Hosts) -> None:
    """Whoever deletes a machine that moves means it."""
    await hosts.set_off()
    hosts.now += SLOW / 2
    hosts.machine = replace(hosts.machine, deleting=True)
    for _ in range(5):
        done = await MachineReconciler(hosts, now=lambda: hosts.now).reconcile(hosts.machine)
        hosts.now += done.look_again or timedelta(0)
    assert done.settled
    assert hosts.where() == []


async def test_a_machine_that_came_is_deleted_where_it_came_to(hosts: Hosts) -> None:
    """With all that it has there, and what is left where it was."""
    await hosts.set_off()
    hosts.now += 2 * SLOW
    hosts.machine = replace(hosts.machine, deleting=True)
    done = await hosts.round()
    assert not done.settled
    assert (hosts.machine.host, hosts.machine.move) == ("b", None)
    for _ in range(5):
        done = await hosts.round()
        hosts.now += done.look_again or timedelta(0)
    assert done.settled
    assert hosts.where() == []
