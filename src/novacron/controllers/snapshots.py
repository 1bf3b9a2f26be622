"""Keeps the snapshots that a machine's owner wants: on demand, by schedule, and no more.

Runs after the steps of a machine and never stops them: a snapshot that cannot be taken is told by
a condition of its own. One thing is done in a round; the next round sees what became of it. What
cannot be done is in the way of nothing else: a backup by schedule hangs on nobody's request. Of
much that cannot be done only some is tried each time: others share the host.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from novacron.controllers.round import Scope
from novacron.core.conditions import Condition
from novacron.core.driver import Accepted
from novacron.core.errors import Busy, DriverError, Unreachable
from novacron.core.quantity import format_bytes
from novacron.core.schedule import Due, due
from novacron.core.snapshot import (
    Kept,
    Snapshot,
    SnapshotOrder,
    SnapshotReport,
    Snapshots,
    SnapshotWishes,
    is_scheduled,
    scheduled_name,
    surplus,
)

__all__ = ["TROUBLE_AGAIN", "Tended", "listed", "tend"]

CONDITION = "Snapshotted"
SOON = timedelta(milliseconds=500)
TROUBLE_AGAIN = timedelta(seconds=30)
# Of one sort, in one round.
TRIED = 5

T = TypeVar("T")


@dataclass(slots=True)
class Tended:
    """What is to be put on record, and when to look again."""

    report: SnapshotReport | None = None
    again: timedelta | None = None


@dataclass(slots=True)
class _Turn:
    """One machine's snapshots in one round."""

    scope: Scope
    driver: Snapshots
    there: dict[str, Snapshot]
    since: datetime | None = None
    due: Due | None = None
    claim: Condition | None = None
    failed: dict[str, DriverError] = field(default_factory=dict)
    again: list[timedelta] = field(default_factory=list)

    @property
    def wishes(self) -> SnapshotWishes:
        return self.scope.machine.snapshots

    @property
    def too_many(self) -> list[str]:
        """The scheduled snapshots that are not to be kept, the oldest first."""
        policy = self.wishes.policy
        return surplus(list(self.there), policy.retention) if policy else []

    def some(self, of_one_sort: Sequence[T]) -> Iterable[T]:
        """Return what to try of this: the first, and some of the others, each as time goes by.

        Where nothing fails it is the first that is done, so that their order is kept.
        """
        if len(of_one_sort) <= TRIED:
            return of_one_sort
        first, others = of_one_sort[0], of_one_sort[1:]
        turn = int(self.scope.now.timestamp() / TROUBLE_AGAIN.total_seconds())
        begin = turn * (TRIED - 1) % len(others)
        return [first, *[*others[begin:], *others[:begin]][: TRIED - 1]]

    async def take(self, order: SnapshotOrder) -> None:
        """Take a snapshot, or see how far it is."""
        self.scope.may_act()
        accepted = await self.driver.take_snapshot(self.scope.machine.ref, order)
        what = f"taking snapshot {order.name}"
        if await self._follow(accepted, what) and (taken := self.there.get(order.name)):
            self.scope.tell("SnapshotTaken", _described(taken))

    async def remove(self, name: str, why: str) -> None:
        """Remove a snapshot, or see how far that is."""
        self.scope.may_act()
        accepted = await self.driver.remove_snapshot(self.scope.machine.ref, name)
        if await self._follow(accepted, f"removing snapshot {name}") and name not in self.there:
            self.scope.tell("SnapshotRemoved", f"removed snapshot {name}: {why}")

    def has_failed(self, name: str, error: DriverError) -> None:
        """Take note of what could not be done about a snapshot, and try it again later."""
        self.failed[name] = error
        self.again.append(error.after if isinstance(error, Busy) else TROUBLE_AGAIN)

    async def _follow(self, accepted: Accepted, what: str) -> bool:
        """See what became of an order; say whether nothing is under way any more."""
        before = set(self.there)
        self.there = await listed(self.driver, self.scope)
        if set(self.there) != before:
            self.again.append(timedelta(0))  # perhaps there is more to do
            return True
        self.claim = Condition(CONDITION, "Unknown", "UnderWay", what)
        self.again.append(accepted.look_again or SOON)
        return False


async def tend(scope: Scope) -> Tended:
    """Do the next thing about a machine's snapshots."""
    wishes, seen = scope.machine.snapshots, scope.seen
    if seen is None or not (wishes.any or seen.snapshots or scope.restored):
        return Tended(_as_it_was(scope) if scope.restored else None)
    if not isinstance(scope.driver, Snapshots):
        claim = Condition(CONDITION, "False", "Unsupported", "its host keeps no snapshots")
        return Tended(_as_it_was(scope, claim if wishes.policy or wishes.wanted else None))
    try:
        turn = _Turn(scope, scope.driver, await listed(scope.driver, scope))
    except DriverError as error:
        return Tended(_as_it_was(scope, _trouble(error)), TROUBLE_AGAIN)
    _read_clock(turn)
    try:
        awaits_restore = wishes.to_restore is not None and scope.restored is None
        if not seen.changing and not awaits_restore:
            await _next_thing(turn)
    except Unreachable as error:
        turn.claim = _trouble(error)
        turn.again.append(TROUBLE_AGAIN)
    return Tended(_report(turn), min(turn.again, default=None))


async def listed(driver: Snapshots, scope: Scope) -> dict[str, Snapshot]:
    """Return the machine's snapshots by name."""
    return {each.name: each for each in await driver.snapshots(scope.machine.ref)}


async def _next_thing(turn: _Turn) -> None:
    """Do the first thing that can be done, or see how far it is."""
    for name, do in _to_do(turn):
        try:
            await do()
        except Unreachable:
            raise
        except DriverError as error:
            turn.has_failed(name, error)
        else:
            return


def _to_do(turn: _Turn) -> Iterator[tuple[str, Callable[[], Awaitable[None]]]]:
    """Return what is to be tried about which snapshot, first what makes room."""
    wishes, there = turn.wishes, frozenset(turn.there)
    for name in turn.some(sorted(wishes.unwanted & there)):
        yield name, partial(turn.remove, name, "asked for")
    if wishes.policy is not None:
        for name in turn.some(turn.too_many):
            yield name, partial(turn.remove, name, f"{wishes.policy.retention} are kept")
        if turn.due is not None and turn.due.run is not None:
            order = SnapshotOrder(scheduled_name(turn.due.run), wishes.policy.memory)
            yield order.name, partial(turn.take, order)
    # One that is on record and not there was lost.
    known = there.union(each.name for each in wishes.kept)
    for order in turn.some([each for each in wishes.wanted if each.name not in known]):
        yield order.name, partial(turn.take, order)


def _read_clock(turn: _Turn) -> None:
    """Find out which run of the schedule is to be made; a new one is followed from now on."""
    wishes, scope = turn.wishes, turn.scope
    if wishes.policy is None:
        return
    schedule = wishes.policy.schedule
    known = wishes.since if wishes.followed == str(schedule) else None
    turn.since = known or scope.now.replace(microsecond=0)
    try:
        schedule.check()
        found = due(schedule, scope.machine.uid, turn.since, scope.now)
    except ValueError as error:
        turn.claim = Condition(CONDITION, "False", "InvalidSchedule", str(error))
        return
    # One that is to go, or goes in this round, would else be taken anew for ever.
    if found.run is not None and scheduled_name(found.run) in wishes.unwanted.union(turn.there):
        turn.since, found = found.run, replace(found, run=None)
    turn.due = found
    if found.again is not None:
        turn.again.append(max(found.again - scope.now, SOON))


def _report(turn: _Turn) -> SnapshotReport:
    wishes, scope = turn.wishes, turn.scope
    there = tuple(_kept(each) for each in turn.there.values())
    run = turn.due.run if turn.due else None
    was_made = run is not None and scheduled_name(run) in turn.there
    ordered = {order.name for order in wishes.wanted}
    # One that was asked for and went away is never taken anew: it would be another one.
    lost = tuple(
        Kept(each.name, each.created, each.size, each.memory, each.quiesced, lost=True)
        for each in wishes.kept
        if each.name in ordered and each.name not in turn.there
    )
    claim = _claim(turn)
    if claim is None and lost:
        names = ", ".join(each.name for each in lost)
        claim = Condition(
            CONDITION, "False", "SnapshotLost", f"somebody else removed {names} from its host"
        )
    return SnapshotReport(
        kept=tuple(sorted((*there, *lost), key=lambda each: (str(each.created), each.name))),
        claim=claim,
        restored=scope.restored or wishes.restored,
        followed=str(wishes.policy.schedule) if wishes.policy else "",
        since=run if was_made else turn.since,
        next_run=turn.due.again if turn.due else None,
    )


def _claim(turn: _Turn) -> Condition | None:
    """Say what cannot be done, each by the name of its snapshot; else what is under way."""
    for_now = {name: why for name, why in turn.failed.items() if isinstance(why, Busy)}
    for_long = {name: why for name, why in turn.failed.items() if name not in for_now}
    if turn.claim is not None and not for_long:
        return turn.claim
    failed = for_long or for_now
    if not failed:
        return None
    reason = next(iter(failed.values())).reason
    return Condition(CONDITION, "False" if for_long else "Unknown", reason, _said(turn, failed))


def _said(turn: _Turn, failed: Mapping[str, DriverError]) -> str:
    """Tell what failed, but of what is too many only the oldest.

    There may be hundreds more, and to name those that were tried would be another text each time.
    """
    more = turn.too_many[1:]
    unasked = frozenset(more) - turn.wishes.unwanted
    told = [name for name in failed if name not in unasked] or list(failed)[:1]
    said = "; ".join(f"snapshot {name}: {failed[name]}" for name in told)
    too_many_failed = not failed.keys().isdisjoint(turn.too_many)
    return f"{said}; and {len(more)} more are too many" if more and too_many_failed else said


def _as_it_was(scope: Scope, claim: Condition | None = None) -> SnapshotReport:
    wishes = scope.machine.snapshots
    return SnapshotReport(
        kept=wishes.kept,
        claim=claim,
        restored=scope.restored or wishes.restored,
        followed=wishes.followed,
        since=wishes.since,
        next_run=wishes.next_run,
    )


def _kept(there: Snapshot) -> Kept:
    size = None if there.size_bytes is None else format_bytes(there.size_bytes)
    return Kept(there.name, there.created, size, there.memory, there.quiesced)


def _described(taken: Snapshot) -> str:
    kind = "disks and memory" if taken.memory else "disks"
    rest = ", the guest's file systems at rest" if taken.quiesced else ""
    by = " by schedule" if is_scheduled(taken.name) else ""
    return f"took snapshot {taken.name}{by}: {kind}{rest}"


def _trouble(error: DriverError) -> Condition:
    return Condition(CONDITION, "False", error.reason, str(error))
