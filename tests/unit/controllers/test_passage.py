"""A machine on its way between two simulated hosts, with a clock of the test's own."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from novacron.controllers.reconciler import MachineReconciler
from novacron.controllers.round import Round
from novacron.controllers.summary import summarise
from novacron.core.driver import Driver
from novacron.core.machine import Machine, Power, Resources
from novacron.core.move import Move, MoveResult
from novacron.core.report import Phase
from novacron.core.steps import Wait
from novacron.drivers.simulation import Delays, Fault, Operation, SimulatedHost, SimulationDriver
from novacron.drivers.simulation import World as Outside

SIZE = Resources(2, 1024, 10240)
ROOM = Resources(8, 8192, 99999)
SLOW = timedelta(seconds=10)


@dataclass(slots=True)
class Hosts:
    """Two hosts, one machine, and what was last written about it."""

    directory: Path
    delays: Delays = field(default_factory=lambda: Delays(move=SLOW))
    faults: tuple[Fault, ...] = ()
    now: datetime = datetime(2026, 11, 15, tzinfo=UTC)
    silent: dict[str, str] = field(default_factory=dict)
    fenced: set[str] = field(default_factory=set)
    machine: Machine = field(init=False)
    drivers: dict[str, SimulationDriver] = field(init=False)

    def __post_init__(self) -> None:
        self.machine = Machine(
            uid="uid-1",
            namespace="default",
            name="vm",
            wanted=SIZE,
            image="builtin://tiny",
            power=Power.ON,
            host="a",
            reserved=SIZE,
        )
        self.drivers = {"a": self.driver("a"), "b": self.driver("b", self.faults)}

    def driver(self, name: str, faults: tuple[Fault, ...] = ()) -> SimulationDriver:
        host = SimulatedHost(name, ROOM, delays=self.delays, faults=faults)
        return SimulationDriver(
            self.directory / "world.db", host, clock=lambda: self.now, random=lambda: 0.0
        )

    def named(self, host: str) -> Driver | None:
        return self.drivers.get(host)

    def trouble(self, host: str) -> str | None:
        return self.silent.get(host)

    def is_fenced(self, host: str) -> bool:
        return host in self.fenced

    def lose(self, host: str) -> None:
        """Have a host lose its power, and somebody say so."""
        self.silent[host] = "no route"
        self.fenced.add(host)

    def order(self, **fields: object) -> None:
        self.machine = replace(self.machine, move=Move("1", "a", "b", **fields))  # type: ignore[arg-type]

    async def round(self) -> Round:
        """Reconcile once, and take for written what came of it."""
        done = await MachineReconciler(self, now=lambda: self.now).reconcile(self.machine)
        report = summarise(self.machine, done, self.now, write_usage=False)
        moved = report.move
        self.machine = replace(
            self.machine,
            host=report.host,
            conditions=report.conditions,
            last_move=moved or self.machine.last_move,
            leftovers=self.machine.leftovers if report.leftovers is None else report.leftovers,
            move=None if moved and moved.result else self.machine.move,
        )
        return done

    async def settle(self) -> Round:
        for _ in range(60):
            done = await self.round()
            if self.machine.move is None and done.settled:
                return done
            self.now += max(done.look_again or timedelta(0), timedelta(milliseconds=1))
        raise AssertionError(f"never settles: {done}")

    def where(self) -> list[tuple[str, Power]]:
        with Outside(self.directory / "world.db", clock=lambda: self.now) as outside:
            return [(each.host, each.power) for each in outside.machines()]


@pytest.fixture
async def hosts(tmp_path: Path) -> Hosts:
    """A machine that runs on host a."""
    hosts = Hosts(tmp_path)
    await hosts.settle()
    return hosts


async def test_a_machine_moves_and_says_how_far_it_is(hosts: Hosts) -> None:
    """It runs all the while, and belongs to the new host only when it is there."""
    hosts.order()
    await hosts.round()
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
    hosts.order()
    await hosts.round()
    hosts.now += SLOW / 2
    hosts.machine = replace(hosts.machine, move_cancelled=True)
    await hosts.settle()
    assert hosts.machine.last_move is not None
    assert hosts.machine.last_move.result is MoveResult.CANCELLED
    assert hosts.where() == [("a", Power.ON)]


async def test_a_process_that_knows_nothing_goes_on_with_a_move(hosts: Hosts) -> None:
    """Whatever is needed is at the hosts and in the record."""
    hosts.order()
    await hosts.round()
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


async def test_a_source_that_falls_silent_is_waited_for(hosts: Hosts) -> None:
    """Nobody can tell whether the guest still runs there, so nothing is started elsewhere."""
    hosts.order()
    await hosts.round()
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
    hosts.order()
    await hosts.round()
    hosts.now += SLOW / 2
    hosts.machine = replace(hosts.machine, deleting=True)
    for _ in range(5):
        done = await MachineReconciler(hosts, now=lambda: hosts.now).reconcile(hosts.machine)
        hosts.now += done.look_again or timedelta(0)
    assert done.settled
    assert hosts.where() == []


async def test_a_machine_of_a_host_that_is_off_begins_anew_on_another(hosts: Hosts) -> None:
    """Nothing is asked of the old host; what it has is removed when it is back."""
    hosts.silent["a"] = "no route"
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


async def test_a_move_whose_source_is_off_is_given_up_when_nothing_came(hosts: Hosts) -> None:
    """What may be left where it was to go is on record, and whoever places it decides anew."""
    hosts.order()
    await hosts.round()
    hosts.lose("a")
    await hosts.round()
    last = hosts.machine.last_move
    assert last is not None
    assert (last.result, last.reason) == (MoveResult.FAILED, "HostLost")
    assert (hosts.machine.host, hosts.machine.leftovers) == ("a", {"b"})


async def test_a_machine_that_came_before_its_source_was_lost_is_its_targets(hosts: Hosts) -> None:
    """Nobody noticed that it came, and yet it is not begun anew."""
    hosts.order()
    await hosts.round()
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
    hosts.order()
    await hosts.round()
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
    hosts.order()
    await hosts.round()
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


async def test_a_machine_that_came_is_deleted_where_it_came_to(hosts: Hosts) -> None:
    """With all that it has there, and what is left where it was."""
    hosts.order()
    await hosts.round()
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
