"""The mover: decides which machines leave their host, and for where.

The placer's other half: only the leader runs it, room is taken from the same table in the same
breath as a decision is made, and the decision is recorded in the object before anything is done.
The machine's own controller acts on the record.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from novacron.controllers.attempts import Attempts
from novacron.controllers.bids import Bid, Refused, bid_of, live_or_not
from novacron.controllers.evictions import EVICTION_BLOCKED, blocked, stays_put
from novacron.controllers.ledger import Ledger
from novacron.controllers.ports import PlacedKind
from novacron.controllers.sight import blind, only_stopped
from novacron.controllers.waiting import Promises, WaitingRoom
from novacron.core.conditions import Condition, merge_conditions
from novacron.core.errors import Rejected
from novacron.core.machine import Machine, Resources
from novacron.core.migration import HAS_SNAPSHOTS, HOST_LOST, VOLUMES_AWAIT_RESTART
from novacron.core.move import Move, MoveReport, MoveResult
from novacron.core.placement import placement_of
from novacron.core.report import MachineReport
from novacron.runtime.events import Events
from novacron.runtime.queue import Queue
from novacron.runtime.resource import Key, Object
from novacron.runtime.writer import Writer
from novacron.scheduler import Decision, Held, Placed, choose, one_line

__all__ = ["Mover"]

# A move that failed is not tried again at once when nobody but us asks for it.
FAILED_AGAIN = timedelta(seconds=30)
# Why a guest that ran did not come, which a stopped one does.
LEFT_BY_A_GUEST = frozenset({HAS_SNAPSHOTS, VOLUMES_AWAIT_RESTART})
TIDY_AGAIN = timedelta(seconds=2)


@dataclass(slots=True)
class Mover:
    """Moves the machines of one kind."""

    kind: PlacedKind
    writer: Writer
    ledger: Ledger
    events: Events
    now: Callable[[], datetime]
    queue: Queue
    grace: timedelta
    # Those who wait for room, or for others to move first.
    _waiting: WaitingRoom = field(init=False)
    _left: set[str] = field(default_factory=set)
    _promises: Promises = field(init=False)
    _attempts: Attempts = field(default_factory=Attempts)

    def __post_init__(self) -> None:
        self._waiting = WaitingRoom(self.queue)
        settle = partial(self.ledger.settle_move, kind=self.kind)
        self._promises = Promises(self.writer, self.ledger.is_assumed_move, settle)
        self.ledger.on_room(self._waiting.ring)
        self.ledger.on_host(self.host_changed)

    def host_changed(self, name: str) -> None:
        """Have the machines of a host looked at that is to be left, or seems to be lost."""
        host = self.ledger.declared.get(name)
        left = host is not None and host.is_to_be_left
        if not left and name not in self._left:
            return
        # Also once more when it is not to be left any more: some may have said that they stay.
        (self._left.add if left else self._left.discard)(name)
        for uid in self.ledger.machines_on(name):
            owner = self.ledger.owners.get(uid)
            if owner is not None and owner.resource == self.writer.cache.resource:
                self.queue.add(owner.key)

    def concerns(self, obj: Object) -> bool:
        """Say whether an object asks to move, or is on a host that is to be left."""
        held = self.ledger.table.held(obj["metadata"]["uid"])
        if held is None:
            return False
        host = self.ledger.declared.get(held.host)
        bidden = host is not None and host.is_to_be_left
        return bidden or self.kind.asks_to_move(obj) or stays_put(obj)

    async def reconcile(self, key: Key) -> timedelta | None:
        """Decide about one machine."""
        self._waiting.leave(key)
        obj = await self._promises.latest(key)
        if obj is None or "deletionTimestamp" in obj["metadata"]:
            return None
        try:
            machine = self.kind.machine(obj)
        except Rejected:
            return None  # the placer says so
        if machine.host is None or machine.move_over:
            return None
        bid = bid_of(machine, self.ledger, self.now(), self.grace)
        if isinstance(bid, timedelta):
            await self._unblock(obj, machine)
            return bid
        return await self._answer(obj, machine, bid)

    async def _answer(self, obj: Object, machine: Machine, bid: Bid | None) -> timedelta | None:
        lost = bid is not None and bid.lost
        if machine.move is not None:
            return None  # it is on its way, and only who takes it there knows where it may be
        withdrawn = machine.move_cancelled and machine.move_request and not lost
        if bid is not None and not withdrawn:
            return await self._decide(obj, machine, bid)
        if withdrawn:
            await self._cancel(obj, machine)
        elif machine.wishes_changed:
            await self._drop(obj, machine)  # where it is will do, which is to be remembered
        else:
            await self._unblock(obj, machine)
        return None

    async def _unblock(self, obj: Object, machine: Machine) -> None:
        """Have a machine not say any more that it stays where it should not be."""
        if machine.condition(EVICTION_BLOCKED) is not None:
            await self._say(obj, machine, None, {EVICTION_BLOCKED: None})

    async def _decide(self, obj: Object, machine: Machine, bid: Bid) -> timedelta | None:
        """Answer a wish to have the machine elsewhere."""
        assert machine.host is not None
        if not bid.urgent and (left := self._pause(machine)):
            return left
        self._attempts.note(machine, self.now())
        left_there = self._left_there(machine, bid)
        if isinstance(left_there, timedelta):
            return left_there
        if bid.at_once and len(self.ledger.moves_from(machine.host)) >= bid.at_once:
            self._waiting.enter(Key(machine.namespace, machine.name))
            return None
        live = left_there or live_or_not(machine, bid, self.ledger.declared.get(machine.host))
        if isinstance(live, Refused):
            return await self._refuse(obj, machine, bid, live)
        # Its new host has to have room for what it still has, too: it shrinks when it is there.
        holding = self.kind.holding(obj)
        taking = holding.resources if holding else machine.wanted
        decision, live = self._choose(replace(machine, reserved=taking), bid, live=live)
        if not isinstance(decision, Placed):
            return await self._refuse(obj, machine, bid, Refused("NoHostFits", one_line(decision)))
        version = obj["metadata"]["resourceVersion"]
        to, devices = decision.host, decision.devices
        move = Move(version, machine.host, to, live, bid.lost, bid.why, devices)
        await self._record(obj, machine, move, taking)
        return None

    def _left_there(self, machine: Machine, bid: Bid) -> Refused | timedelta | None:
        """Have a machine wait while what is left of it where it is to go is being removed.

        Or stay, where nobody can do that now.
        """
        if bid.to is None or bid.to not in machine.leftovers:
            return None
        host = self.ledger.declared.get(bid.to)
        if host is not None and not host.is_troubled:
            return TIDY_AGAIN
        why = "is not ready" if host else "is not declared"
        message = f"host {bid.to} still has something of it from before, and {why}"
        return Refused("LeftoversThere", message)

    def _choose(self, machine: Machine, bid: Bid, *, live: bool) -> tuple[Decision, bool]:
        """Choose a host; where none can go on with it as it runs, it may be stopped."""
        assert machine.host is not None
        source = self.ledger.declared.get(machine.host)
        sought = bid.sought(machine, source, live=live)
        if live and not bid.urgent:  # what was said of that last may have been overwritten since
            unmatched = self._attempts.unmatched(machine.uid)
            sought = replace(sought, refused_hosts=sought.refused_hosts | unmatched)
        decision = self._best(sought, bid)
        if not (live and bid.stop_allowed):
            return decision, live
        if isinstance(decision, Placed) and not self._leaves_disks(machine, decision.host):
            return decision, live
        return self._best(bid.sought(machine, source, live=False), bid), False

    def _leaves_disks(self, machine: Machine, host: str) -> bool:
        """Say whether something would not come to a host with a guest that runs.

        Where hosts do not tell what they see, a move that was tried has told.
        """
        last = machine.last_move
        tried = last is not None and last.target == host and last.reason in LEFT_BY_A_GUEST
        return tried or host in only_stopped(machine, self.ledger)

    def _best(self, sought: Machine, bid: Bid) -> Decision:
        """Choose among those that are likely to take the machine, if any of them can, or all."""
        if bid.to is None:
            for hosts in self._spared(sought, bid):
                refused = sought.refused_hosts | hosts
                decision = choose(self.ledger.table, replace(sought, refused_hosts=refused))
                if isinstance(decision, Placed):
                    return decision
        return choose(self.ledger.table, sought)

    def _spared(self, machine: Machine, bid: Bid) -> Iterator[frozenset[str]]:
        """Return which hosts to leave out: those that failed lately, or do not see its disks."""
        unseeing = blind(machine, self.ledger, lost=bid.lost)
        if unseeing:
            yield from (unseeing | hosts for hosts in self._attempts.spared(machine.uid))
            yield unseeing
        yield from self._attempts.spared(machine.uid)

    def _pause(self, machine: Machine) -> timedelta | None:
        last = machine.last_move
        if last is None or last.ended is None or last.result is MoveResult.SUCCEEDED:
            return None
        if last.reason == HOST_LOST:
            return None  # it was given up so that it can begin anew
        left = last.ended + FAILED_AGAIN - self.now()
        # One that was only refused waits for room, and is asked when there is some.
        return left if left > timedelta(0) and last.result is not MoveResult.REFUSED else None

    async def _record(self, obj: Object, machine: Machine, move: Move, taking: Resources) -> None:
        devices = tuple(device.address for device in move.devices)
        held = Held(move.target, taking, machine.neighbour, devices)
        self.ledger.assume_move(machine.uid, held)
        moving = self.kind.moving(obj, placement_of(machine), move)
        await self._promises.keep(obj, partial(self.writer.replace, moving))

    async def _refuse(
        self, obj: Object, machine: Machine, bid: Bid, refused: Refused
    ) -> timedelta | None:
        """Say why it stays; a person's request is answered by that, all else waits."""
        before, now = machine.last_move, self.now()
        report = _nothing_done(machine, bid.to, now, MoveResult.REFUSED, refused)
        if before and replace(before, started=now, ended=now) == report and not bid.urgent:
            report = before  # it was said, and saying it again would only move the time
        claims: dict[str, Condition | None] = {EVICTION_BLOCKED: None}
        if bid.evicted:
            claims[EVICTION_BLOCKED] = blocked(bid, refused)
        if await self._say(obj, machine, report, claims):
            message = f"stays on host {machine.host}: {refused.message}"
            self.events.warning(obj, "MigrationRefused", message)
        key = Key(machine.namespace, machine.name)
        if bid.urgent:
            await self._drop(self.writer.cache.get(key) or obj, machine)
            return None
        self._waiting.enter(key)
        return None

    async def _cancel(self, obj: Object, machine: Machine) -> None:
        """Take back a request that nobody decided on, and say so to whoever waits."""
        assert machine.move_request is not None
        to, why = machine.move_request.to, Refused("Cancelled", "as asked")
        report = _nothing_done(machine, to, self.now(), MoveResult.CANCELLED, why)
        await self._say(obj, machine, report, {})
        written = self.writer.cache.get(Key(machine.namespace, machine.name))
        await self._drop(written or obj, machine)

    async def _say(
        self,
        obj: Object,
        machine: Machine,
        report: MoveReport | None,
        claims: Mapping[str, Condition | None],
    ) -> bool:
        as_seen = replace(machine, generation=machine.seen_generation)
        said = MachineReport(
            phase=None,
            host=machine.host,
            reserved=machine.reserved,
            refused_hosts=machine.refused_hosts,
            seen=None,
            conditions=merge_conditions(machine.conditions, claims, self.now()),
            move=report,
        )
        return await self.writer.status(obj, self.kind.status(obj, as_seen, said))

    async def _drop(self, obj: Object, machine: Machine) -> None:
        """Take away a request that was answered."""
        await self.writer.replace(self.kind.moving(obj, placement_of(machine), None))


def _nothing_done(
    machine: Machine, to: str | None, now: datetime, result: MoveResult, why: Refused
) -> MoveReport:
    """Return what is said of a request for which nothing was done.

    By the id of the last move it is known for ever that this one is over, should somebody put its
    record back.
    """
    return MoveReport(
        id=machine.last_move.id if machine.last_move else "",
        source=machine.host,
        target=to,
        started=now,
        ended=now,
        result=result,
        reason=why.reason,
        message=why.message,
    )
