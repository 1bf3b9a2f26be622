"""What several processes divide among themselves: leadership, and the shards of the keys.

A claim is a Lease that names the member who holds it. It is taken by compare-and-swap when it
is free: not there, given back, or held by a member who was silent for the lease's duration.
Losing such a race is no error. Everything follows from one look at all leases per round, so a
write whose answer was lost is found out by the next look.

Nobody deletes a claim, and nobody should: it would be free at once, while its holder notices
only at its next look, and leaves.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass, field
from enum import Enum, auto

from novacron.runtime.errors import AlreadyExists, ApiError, Conflict, NotFound
from novacron.runtime.leases import Lease
from novacron.runtime.membership import Membership, View, nap
from novacron.runtime.ownership import Handover, nothing, nothing_yet
from novacron.runtime.resource import Key
from novacron.runtime.shards import LEADER, assign, claim_for, claim_names

__all__ = ["Claims"]

log = logging.getLogger(__name__)

SHARDS_NOTE = "novacron.io/shards"
LEAVING_NOTE = "novacron.io/leaving"


class _Stage(Enum):
    GAINING = auto()
    HELD = auto()
    DRAINING = auto()
    DRAINED = auto()


@dataclass(slots=True)
class Claims:
    """The claims of one member; an ``Ownership``."""

    membership: Membership
    shards: int = 1
    gained: Handover = field(default=nothing)
    begun: Callable[[str], None] = field(default=nothing_yet)
    drain: Handover = field(default=nothing)
    _stages: dict[str, _Stage] = field(default_factory=dict)
    _work: set[asyncio.Task[None]] = field(default_factory=set)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _leaving: bool = False
    _at_odds: bool = False

    def __post_init__(self) -> None:
        claim_names(self.shards)
        self.membership.notes[SHARDS_NOTE] = str(self.shards)

    @property
    def held(self) -> frozenset[str]:
        """The claims under which this process may act, while the fence is open."""
        return frozenset(c for c, stage in self._stages.items() if stage is _Stage.HELD)

    @property
    def leader(self) -> bool:
        """Whether this process leads."""
        return self._stages.get(LEADER) is _Stage.HELD

    def claim_for(self, key: Key, /) -> str:
        """Return the claim under which an object is worked on."""
        return claim_for(key, self.shards)

    def owns(self, key: Key, /) -> bool:
        """Say whether this process works on an object now."""
        return self._stages.get(claim_for(key, self.shards)) is _Stage.HELD

    def stop(self) -> None:
        """Drain and give back everything, then let ``run`` return."""
        self._leaving = True
        # Others should not count on a member that goes.
        self.membership.notes[LEAVING_NOTE] = "true"
        self.membership.hurry()
        self._wake.set()

    async def run(self) -> None:
        """Take part until stopped and everything is given back."""
        await self.membership.join()
        async with asyncio.TaskGroup() as group:
            heart = group.create_task(self.membership.run())
            try:
                await self._rounds()
            finally:
                heart.cancel()
                for task in self._work:
                    task.cancel()
        await self.membership.leave()

    async def _rounds(self) -> None:
        while True:
            self._reap()
            try:
                await self._look_after()
            except ApiError as error:
                log.warning("claims not looked after: %s", error)
            if self._leaving and not self._stages:
                return
            await nap(self._wake, self._pause())

    def _pause(self) -> float:
        retry = self.membership.timing.retry.total_seconds()
        due = self.membership.sightings.next_expiry()
        return retry if due is None else min(retry, max(0.01, due - self.membership.clock()))

    async def _look_after(self) -> None:
        """Look once at all leases and do what follows from them."""
        view = await self.membership.look()
        holders = {claim: self._holder(view, claim) for claim in claim_names(self.shards)}
        self._compare(holders)
        await self._give_back(view)
        if self._leaving:
            self._drain_all_but(())
        elif not self._differ(view):
            await self._divide(view, holders)
        if self.leader:
            await self.membership.sweep(view)

    def _holder(self, view: View, claim: str) -> str | None:
        """Return who holds a claim, None when it is free."""
        holder = view.claims[claim].holder if claim in view.claims else ""
        return None if self.membership.sightings.expired(holder) else holder or None

    def _compare(self, holders: dict[str, str | None]) -> None:
        """Leave when something of ours is another's; take up what is ours without our knowing."""
        me = self.membership.identity
        for claim in self._stages:
            if holders[claim] != me:
                self.membership.lose(f"{claim} is held by {holders[claim] or 'nobody'}")
        for claim, holder in holders.items():
            if holder == me and claim not in self._stages:
                self._begin(claim)

    async def _give_back(self, view: View) -> None:
        drained = [c for c, stage in self._stages.items() if stage is _Stage.DRAINED]
        for claim in drained:
            lease = view.claims[claim].released(self.membership.wall())
            try:
                await self.membership.leases.replace(lease)
            except (Conflict, NotFound):
                continue  # the next look tells
            del self._stages[claim]
            log.info("%s gave back %s", self.membership.identity, claim)

    def _differ(self, view: View) -> bool:
        """Say whether another divides the keys by another number: then nobody takes anything.

        A key could have two owners otherwise. It ends when a rolling update does.
        """
        mine = self.membership.notes[SHARDS_NOTE]
        others = self.membership.sightings.unexpired()
        notes = {who: view.members[who].notes if who in view.members else {} for who in others}
        odd = sorted(who for who, its in notes.items() if its.get(SHARDS_NOTE) != mine)
        if odd and not self._at_odds:
            log.warning("taking no claims while %s may divide by another number", ", ".join(odd))
        self._at_odds = bool(odd)
        return self._at_odds

    async def _divide(self, view: View, holders: dict[str, str | None]) -> None:
        """Let go of what others should have, take what is free and ours to take."""
        me = self.membership.identity
        shards = {claim: who for claim, who in holders.items() if claim != LEADER}
        plan = assign(shards, self._members(view))
        plan[LEADER] = holders[LEADER] or me
        mine = [claim for claim, who in plan.items() if who == me]
        self._drain_all_but(mine)
        for claim in mine:
            if holders[claim] is None:
                await self._take(view, claim)

    def _members(self, view: View) -> frozenset[str]:
        there = self.membership.sightings.unexpired() & view.members.keys()
        staying = {who for who in there if LEAVING_NOTE not in view.members[who].notes}
        return frozenset(staying | {self.membership.identity})

    async def _take(self, view: View, claim: str) -> None:
        member = self.membership
        found = view.claims.get(claim)
        lease = found or Lease.new(f"{member.leases.group}-{claim}", member.timing)
        write = member.leases.replace if found else member.leases.create
        try:
            await write(lease.taken(member.identity, member.wall()))
        except (AlreadyExists, Conflict, NotFound):
            return  # another was faster
        log.info("%s took %s from %s", member.identity, claim, lease.holder or "nobody")
        self._begin(claim)

    def _begin(self, claim: str) -> None:
        self._stages[claim] = _Stage.GAINING
        self._start(self._pass(claim, self.gained, _Stage.HELD))

    def _drain_all_but(self, kept: Collection[str]) -> None:
        for claim in self.held.difference(kept):
            self._stages[claim] = _Stage.DRAINING
            self._start(self._pass(claim, self.drain, _Stage.DRAINED))

    async def _pass(self, claim: str, handover: Handover, stage: _Stage) -> None:
        await handover(claim)
        self._stages[claim] = stage
        if stage is _Stage.HELD:
            self.begun(claim)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(lambda _: self._wake.set())

    def _reap(self) -> None:
        """Let a hand-over that failed fail everything: its claim would be in limbo."""
        for task in [task for task in self._work if task.done()]:
            self._work.remove(task)
            task.result()
