"""Snapshots of a machine on a simulated host, with a clock of the test's own."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar

import pytest

from novacron.controllers.round import Round
from novacron.controllers.summary import summarise
from novacron.core.driver import Accepted
from novacron.core.errors import Busy, DriverError, OutOfCapacity, Rejected
from novacron.core.machine import MachineRef, Power, Resources
from novacron.core.schedule import Schedule
from novacron.core.snapshot import (
    NO_WISHES,
    RestoreOrder,
    SnapshotOrder,
    SnapshotPolicy,
    SnapshotWishes,
    scheduled_name,
)
from novacron.drivers.simulation import Fault, Operation, SimulatedHost, SimulationDriver
from unit.controllers import stage
from unit.controllers.stage import World

HOURLY = SnapshotPolicy(Schedule("0 * * * *"), retention=3)
HOUR = timedelta(hours=1)


@dataclass
class Keeper:
    """An operator that puts on record what a round found out, unless it dies before."""

    world: World

    def wish(self, **fields: object) -> None:
        """Have the owner change what is wanted."""
        wishes = replace(self.world.machine.snapshots, **fields)  # type: ignore[arg-type]
        self.world.change(snapshots=wishes)

    async def round(self, *, dies: bool = False) -> Round:
        """Reconcile once."""
        world = self.world
        done = await world.reconciler.reconcile(world.machine)
        if done.snapshots is not None and not dies:
            report = done.snapshots
            self.wish(
                kept=report.kept,
                restored=report.restored,
                followed=report.followed,
                since=report.since,
                next_run=report.next_run,
            )
        return done

    async def settle(self) -> Round:
        """Reconcile until nothing happens."""
        for _ in range(100):
            done = await self.round()
            if not done.happened and done.settled:
                return done
        raise AssertionError("never settles")

    async def live(self, time: timedelta) -> list[str]:
        """Let time pass as the operator sees it; return what happened."""
        end, happened = self.world.now + time, list[str]()
        while True:
            done = await self.round()
            happened += [each.reason for each in done.happened]
            again = done.look_again
            if again is None or self.world.now + again > end:
                self.world.now = end
                return happened
            self.world.now += again

    async def names(self) -> list[str]:
        """Return the names of all snapshots at the host."""
        return sorted(each.name for each in await self.world.driver.snapshots(self.ref))

    @property
    def ref(self):
        return self.world.machine.ref

    def condition(self, done: Round) -> tuple[str, str] | None:
        """Return what is said about snapshots after a round."""
        report = summarise(self.world.machine, done, self.world.now, write_usage=False)
        claims = [claim for claim in report.conditions if claim.type == "Snapshotted"]
        return (claims[0].status, claims[0].reason) if claims else None


@pytest.fixture
async def keeper(tmp_path: Path) -> Keeper:
    """A machine that runs."""
    keeper = Keeper(World(tmp_path))
    await keeper.settle()
    return keeper


async def test_a_machine_nobody_wants_snapshots_of_costs_no_look_at_them(keeper: Keeper) -> None:
    """Thousands of machines have none."""
    done = await keeper.round()
    assert done.snapshots is None
    assert keeper.world.machine.snapshots is NO_WISHES


async def test_a_snapshot_is_taken_once_and_stays_when_its_request_goes(keeper: Keeper) -> None:
    """Only an explicit word removes one: a manifest applied without the list is none."""
    keeper.wish(wanted=(SnapshotOrder("one", memory=True),))
    done = await keeper.round()
    assert [each.reason for each in done.happened] == ["SnapshotTaken"]
    await keeper.settle()
    keeper.wish(wanted=())
    await keeper.settle()
    assert await keeper.names() == ["one"]
    kept = keeper.world.machine.snapshots.kept
    assert [(each.name, each.memory, each.lost) for each in kept] == [("one", True, False)]
    keeper.wish(unwanted=frozenset({"one"}))
    await keeper.settle()
    assert await keeper.names() == []
    assert keeper.world.machine.snapshots.kept == ()


async def test_one_that_somebody_else_removed_is_told_and_not_taken_anew(keeper: Keeper) -> None:
    """It would be a snapshot of another moment under the same name."""
    keeper.wish(wanted=(SnapshotOrder("one"),))
    await keeper.settle()
    await keeper.world.driver.remove_snapshot(keeper.ref, "one")
    done = await keeper.settle()
    assert await keeper.names() == []
    assert keeper.condition(done) == ("False", "SnapshotLost")
    assert keeper.world.machine.snapshots.kept[0].lost


async def test_a_schedule_takes_one_an_hour_and_keeps_three(keeper: Keeper) -> None:
    """A new schedule begins with its next run, not with those before it was there."""
    keeper.world.now = datetime(2026, 11, 15, 9, 30, tzinfo=UTC)
    keeper.wish(policy=HOURLY)
    await keeper.live(timedelta(minutes=20))
    assert await keeper.names() == []
    assert keeper.world.machine.snapshots.next_run is not None
    await keeper.live(5 * HOUR)
    await keeper.settle()
    assert await keeper.names() == [f"snapshot-20261115-{hour}0000" for hour in (12, 13, 14)]


async def test_however_many_runs_were_missed_one_is_made_up_for(keeper: Keeper) -> None:
    """It is the last of them, and only once."""
    keeper.wish(policy=HOURLY)
    await keeper.settle()
    keeper.world.now = datetime(2026, 11, 17, 17, 40, tzinfo=UTC)
    happened = await keeper.live(timedelta(minutes=10))
    assert happened == ["SnapshotTaken"]
    assert await keeper.names() == ["snapshot-20261117-170000"]


async def test_an_operator_that_dies_before_it_records_a_run_makes_it_no_second_time(
    keeper: Keeper,
) -> None:
    """The name tells which run it was."""
    keeper.wish(policy=HOURLY)
    await keeper.settle()
    keeper.world.now += 90 * timedelta(minutes=1)
    for _ in range(5):
        await keeper.round(dies=True)
    assert len(await keeper.names()) == 1
    first = (await keeper.world.driver.snapshots(keeper.ref))[0]
    keeper.world.now += timedelta(minutes=1)
    await keeper.settle()
    assert (await keeper.world.driver.snapshots(keeper.ref))[0] == first


async def test_a_run_that_nobody_wants_is_passed_over(keeper: Keeper) -> None:
    """It would be taken and removed again and again, and the guest stand still each time."""
    keeper.wish(policy=HOURLY, unwanted=frozenset({"snapshot-20261115-010000"}))
    assert await keeper.live(2.5 * HOUR) == ["SnapshotTaken"]
    assert await keeper.names() == ["snapshot-20261115-020000"]


async def test_a_run_that_was_made_and_is_to_go_at_once_is_not_made_anew(keeper: Keeper) -> None:
    """By an operator that died, and whose clock was not always right: later ones are kept."""
    later = "snapshot-20271115-000000"
    keeper.wish(policy=replace(HOURLY, retention=1))
    await keeper.world.driver.take_snapshot(keeper.ref, SnapshotOrder(later))
    await keeper.settle()
    keeper.world.now += 1.5 * HOUR
    await keeper.round(dies=True)
    assert len(await keeper.names()) == 2
    assert await keeper.live(HOUR / 4) == ["SnapshotRemoved"]
    assert await keeper.names() == [later]


async def test_another_schedule_begins_anew(keeper: Keeper) -> None:
    """From daily to hourly is no reason to make up for the hours of the day."""
    keeper.wish(policy=SnapshotPolicy(Schedule("@daily"), 3))
    await keeper.settle()
    keeper.world.now += timedelta(hours=12, minutes=30)
    keeper.wish(policy=HOURLY)
    assert await keeper.live(timedelta(minutes=10)) == []


async def test_a_schedule_that_was_taken_away_is_not_followed_on_record_any_more(
    keeper: Keeper,
) -> None:
    """Nobody is told of a next time that does not come, also where there is no snapshot yet."""
    keeper.wish(policy=HOURLY)
    await keeper.settle()
    assert keeper.world.machine.snapshots.next_run is not None
    keeper.wish(policy=None)
    await keeper.settle()
    assert keeper.world.machine.snapshots == NO_WISHES


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        (Schedule("61 * * * *"), "no cron schedule"),
        (Schedule("@daily", "Europe/Nowhere"), "time zone 'Europe/Nowhere' is not known"),
    ],
)
async def test_a_schedule_that_is_none_is_said_and_stops_nothing_else(
    keeper: Keeper, schedule: Schedule, said: str
) -> None:
    """The machine runs all the same, and snapshots on demand are taken."""
    keeper.wish(policy=SnapshotPolicy(schedule, 3), wanted=(SnapshotOrder("one"),))
    done = await keeper.settle()
    assert keeper.condition(done) == ("False", "InvalidSchedule")
    assert done.snapshots is not None
    assert done.snapshots.claim is not None
    assert said in done.snapshots.claim.message
    assert done.settled
    assert await keeper.names() == ["one"]


async def test_a_host_that_cannot_take_one_is_asked_again_later(tmp_path: Path) -> None:
    """And the machine is ready all the same."""
    fault = Fault(Operation.SNAPSHOT, "OutOfCapacity", message="no room")
    keeper = Keeper(World(tmp_path, SimulatedHost("a", Resources(8, 8192, 99999), faults=(fault,))))
    keeper.wish(wanted=(SnapshotOrder("one"),))
    await keeper.round()
    done = await keeper.round()
    assert keeper.condition(done) == ("False", "HostFull")
    assert done.look_again == timedelta(seconds=30)
    assert done.settled


class Refusing(SimulationDriver):
    """A host on which somebody else took snapshots, and that can do only so much."""

    refuses: ClassVar[dict[str, DriverError]] = {}
    tried: ClassVar[list[str]] = []

    async def take_snapshot(self, ref: MachineRef, order: SnapshotOrder) -> Accepted:
        """Take one, unless it cannot be."""
        self.tried.append(order.name)
        if (why := self.refuses.get(order.name)) is not None:
            raise why
        return await super().take_snapshot(ref, order)

    async def remove_snapshot(self, ref: MachineRef, name: str) -> Accepted:
        """Remove one, unless it cannot be."""
        self.tried.append(name)
        if (why := self.refuses.get(f"remove {name}")) is not None:
            raise why
        return await super().remove_snapshot(ref, name)


@pytest.fixture
async def refusing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Keeper:
    """A machine that runs, on a host that cannot take each snapshot or remove it."""
    monkeypatch.setattr(stage, "SimulationDriver", Refusing)
    taken = Rejected("somebody else took a snapshot strange", reason="SnapshotExists")
    monkeypatch.setattr(Refusing, "refuses", {"strange": taken})
    monkeypatch.setattr(Refusing, "tried", [])
    keeper = Keeper(World(tmp_path))
    await keeper.settle()
    return keeper


async def test_a_request_that_cannot_be_met_stops_neither_others_nor_the_schedule(
    refusing: Keeper,
) -> None:
    """A backup of each night must not depend on a name that is taken."""
    refusing.wish(policy=HOURLY, wanted=(SnapshotOrder("strange"), SnapshotOrder("one")))
    await refusing.live(5.5 * HOUR)
    done = await refusing.round()
    assert await refusing.names() == [
        "one",
        *(f"snapshot-20261115-{hour}0000" for hour in ("03", "04", "05")),
    ]
    assert refusing.condition(done) == ("False", "SnapshotExists")
    assert done.snapshots is not None
    assert done.snapshots.claim is not None
    assert done.snapshots.claim.message == "snapshot strange: somebody else took a snapshot strange"
    assert done.look_again == timedelta(seconds=30)


async def test_each_request_that_cannot_be_met_is_told_with_its_own_reason(
    refusing: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asked for the second one hears of it too."""
    monkeypatch.setitem(Refusing.refuses, "big", OutOfCapacity("no room"))
    refusing.wish(wanted=(SnapshotOrder("strange"), SnapshotOrder("big")))
    done = await refusing.round()
    assert refusing.condition(done) == ("False", "SnapshotExists")
    assert done.snapshots is not None
    assert done.snapshots.claim is not None
    assert done.snapshots.claim.message.endswith("snapshot strange; snapshot big: no room")


async def test_what_is_too_much_goes_before_more_is_taken(
    refusing: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host without room has some again by that."""
    refusing.wish(policy=HOURLY)
    await refusing.live(5 * HOUR)
    monkeypatch.setitem(Refusing.refuses, "big", OutOfCapacity("no room"))
    refusing.wish(
        policy=replace(HOURLY, retention=1),
        wanted=(SnapshotOrder("big"),),
        unwanted=frozenset({"snapshot-20261115-040000"}),
    )
    for _ in range(4):
        await refusing.round()
    assert await refusing.names() == ["snapshot-20261115-030000"]


async def test_a_snapshot_that_cannot_be_removed_keeps_no_other_from_being_taken(
    refusing: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be so for as long as its volume is another machine's."""
    refusing.wish(wanted=(SnapshotOrder("stuck"),))
    await refusing.settle()
    monkeypatch.setitem(Refusing.refuses, "remove stuck", Busy("not now"))
    refusing.wish(wanted=(SnapshotOrder("one"),), unwanted=frozenset({"stuck"}))
    done = await refusing.round()
    assert await refusing.names() == ["one", "stuck"]
    assert refusing.condition(done) == ("Unknown", "Busy")


async def scheduled(keeper: Keeper, count: int) -> list[str]:
    """Have snapshots from each hour of the past; return their names."""
    taken = [scheduled_name(keeper.world.now - HOUR * (number + 1)) for number in range(count)]
    for name in taken:
        await keeper.world.driver.take_snapshot(keeper.ref, SnapshotOrder(name))
    Refusing.tried.clear()
    return sorted(taken)


def message(done: Round) -> str:
    """Return what is said of snapshots after a round."""
    assert done.snapshots is not None
    return done.snapshots.claim.message if done.snapshots.claim else ""


async def test_of_hundreds_that_cannot_be_removed_few_are_tried_and_one_is_named(
    refusing: Keeper,
) -> None:
    """They share their host with others, and a status has only so much room.

    What is due is taken all the same, and what was asked for.
    """
    names = await scheduled(refusing, 300)
    Refusing.refuses |= {f"remove {name}": Rejected("it is stuck") for name in names}
    refusing.wish(policy=HOURLY)
    await refusing.round()
    refusing.world.now += 1.5 * HOUR
    refusing.wish(wanted=(SnapshotOrder("one"),))
    for taken in ("snapshot-20261115-010000", "one"):
        Refusing.tried.clear()
        done = await refusing.round()
        assert len(Refusing.tried) <= 6
        assert Refusing.tried[-1] == taken
        assert [each.reason for each in done.happened] == ["SnapshotTaken"]
    done = await refusing.round()
    assert message(done) == f"snapshot {names[0]}: it is stuck; and 297 more are too many"
    assert done.look_again == timedelta(seconds=30)
    refusing.world.now += timedelta(seconds=30)
    assert message(await refusing.round()) == message(done), "nothing new is to be written down"


@pytest.mark.parametrize("place", [0, 1, 20, 46])
async def test_each_of_many_snapshots_gets_its_turn_to_be_removed(
    refusing: Keeper, place: int
) -> None:
    """What makes room may be behind any number of others that cannot go."""
    names = await scheduled(refusing, 50)
    stuck = [name for name in names if name != names[place]]
    Refusing.refuses |= {f"remove {name}": Rejected("it is stuck") for name in stuck}
    refusing.wish(policy=HOURLY)
    await refusing.live(HOUR / 4)
    assert await refusing.names() == stuck


async def test_each_of_many_requests_gets_its_turn_and_is_told_why_not(refusing: Keeper) -> None:
    """Who waits for the last of them hears of it too, and all of them together fill no status."""
    orders = [SnapshotOrder(f"one-{number:02}") for number in range(64)]
    Refusing.refuses |= {each.name: Rejected("no" * 200) for each in orders}
    refusing.wish(wanted=tuple(orders))
    told = set()
    for _ in range(30):
        Refusing.tried.clear()
        done = await refusing.round()
        assert len(Refusing.tried) == 5
        assert len(message(done)) < 2500
        told |= {each.name for each in orders if f"snapshot {each.name}: no" in message(done)}
        refusing.world.now += timedelta(seconds=30)
    assert told == {each.name for each in orders}


async def test_what_is_too_much_and_asked_to_go_is_told_by_its_own_name(refusing: Keeper) -> None:
    """Somebody may wait for that one."""
    names = await scheduled(refusing, 10)
    Refusing.refuses |= {f"remove {name}": Rejected("it is stuck") for name in names}
    refusing.wish(policy=HOURLY, unwanted=frozenset({names[4]}))
    said = message(await refusing.round())
    assert said.startswith(f"snapshot {names[4]}: it is stuck; snapshot {names[0]}: it is stuck; ")


async def test_a_restore_is_made_once_for_each_request(keeper: Keeper) -> None:
    """A machine that went back to its disks is started again, as its owner wants it to run."""
    keeper.wish(wanted=(SnapshotOrder("one"),))
    await keeper.settle()
    keeper.wish(restore=RestoreOrder("one", "r1"))
    happened = [each.reason for _ in range(4) for each in (await keeper.round()).happened]
    assert happened == ["Restored", "Started"]
    outcome = keeper.world.machine.snapshots.restored
    assert outcome is not None
    assert (outcome.request, outcome.succeeded) == ("r1", True)
    keeper.wish(restored=None)  # what was on record is lost; the host still knows
    happened = [each.reason for _ in range(4) for each in (await keeper.round()).happened]
    assert happened == ["Restored"]


async def test_a_restore_of_nothing_fails_for_good_and_stops_nothing(keeper: Keeper) -> None:
    """One that is taken later under the name must not be gone back to by surprise."""
    keeper.wish(restore=RestoreOrder("one", "r1"))
    done = await keeper.round()
    assert done.settled
    outcome = keeper.world.machine.snapshots.restored
    assert outcome is not None
    assert (outcome.succeeded, outcome.message) == (False, "there is no snapshot one")
    assert outcome.reason == "SnapshotNotFound"
    keeper.wish(wanted=(SnapshotOrder("one"),))
    assert [each.reason for each in (await keeper.round()).happened] == ["SnapshotTaken"]
    assert not (await keeper.settle()).happened


async def test_a_protected_machine_goes_when_its_snapshots_have(keeper: Keeper) -> None:
    """By default they go with it."""
    keeper.wish(wanted=(SnapshotOrder("one"),), protect=True)
    await keeper.settle()
    keeper.world.change(deleting=True)
    done = await keeper.round()
    assert not done.settled
    assert done.outcomes["Removed"].reason == "SnapshotsProtected"
    assert "one" in done.outcomes["Removed"].message
    keeper.wish(unwanted=frozenset({"one"}))
    assert (await keeper.round()).settled
    assert await keeper.world.driver.observe(keeper.ref) is None


async def test_snapshots_of_a_machine_that_somebody_took_away_are_protected_too(
    keeper: Keeper,
) -> None:
    """They are within its disks, which would go with it."""
    keeper.wish(wanted=(SnapshotOrder("one"), SnapshotOrder("two")), protect=True)
    await keeper.settle()
    await keeper.world.driver.delete(keeper.ref)
    keeper.world.change(deleting=True)
    done = await keeper.round()
    assert done.outcomes["Removed"].reason == "SnapshotsProtected"
    assert "2 snapshots (one, two)" in done.outcomes["Removed"].message
    keeper.wish(unwanted=frozenset({"one"}))
    done = await keeper.round()
    assert "1 snapshots (two)" in done.outcomes["Removed"].message
    keeper.wish(unwanted=frozenset({"one", "two"}))
    assert (await keeper.round()).settled


async def test_snapshots_that_were_lost_before_hold_up_no_deletion(keeper: Keeper) -> None:
    """Nothing goes with the machine that is not gone already."""
    keeper.wish(wanted=(SnapshotOrder("one"),), protect=True)
    await keeper.settle()
    await keeper.world.driver.remove_snapshot(keeper.ref, "one")
    await keeper.settle()
    await keeper.world.driver.delete(keeper.ref)
    keeper.world.change(deleting=True)
    assert (await keeper.round()).settled


async def test_a_stopped_machine_has_snapshots_too(keeper: Keeper) -> None:
    """Without memory, whatever was asked for."""
    keeper.world.change(power=Power.OFF)
    keeper.wish(wanted=(SnapshotOrder("one", memory=True),))
    await keeper.settle()
    assert [each.memory for each in keeper.world.machine.snapshots.kept] == [False]


def test_what_nobody_asked_for_is_no_wish() -> None:
    """So that most machines share one value."""
    assert not NO_WISHES.any
    assert SnapshotWishes(wanted=(SnapshotOrder("one"),)).any
