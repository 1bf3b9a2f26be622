"""Finds out what a declared host has and whether it answers, and writes that into its status."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from novacron.controllers.drivers import DriverPool
from novacron.controllers.kept import VolumeHolders, told_once
from novacron.controllers.ledger import Ledger
from novacron.controllers.ports import HostKind
from novacron.core.conditions import Condition, merge_conditions
from novacron.core.driver import Driver
from novacron.core.errors import DriverError, Rejected, Unreachable
from novacron.core.eviction import Eviction, evicting
from novacron.core.host import DeclaredHost, HostFacts, HostReport, NodeMarks
from novacron.runtime.events import Events
from novacron.runtime.queue import Queue
from novacron.runtime.resource import Key, Object
from novacron.runtime.writer import Writer

__all__ = ["HostController"]

TROUBLE_AGAIN = timedelta(seconds=5)
SOON = timedelta(seconds=1)


@dataclass(slots=True)
class HostController:
    """Reconciles Hosts."""

    kind: HostKind
    writer: Writer
    drivers: DriverPool
    ledger: Ledger
    events: Events
    interval: timedelta
    now: Callable[[], datetime]
    queue: Queue
    marks_of: Callable[[str], Awaitable[NodeMarks]]
    holders: VolumeHolders
    _leaving: set[Key] = field(default_factory=set)
    _seen_at: dict[str, datetime] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ledger.on_room(self.retry_leaving)
        self.ledger.on_move(self.retry_leaving)

    def retry_leaving(self) -> None:
        """Have hosts looked at that wait for their last machine to go: something became of one."""
        for key in self._leaving:
            self.queue.add_after(key, SOON)

    async def reconcile(self, key: Key) -> timedelta | None:
        """Look at one host and write down what is new."""
        obj = self.writer.cache.get(key)
        self._leaving.discard(key)
        if obj is None:
            return None
        finalizers = obj["metadata"].get("finalizers") or []
        ours = self.kind.finalizer in finalizers
        if "deletionTimestamp" in obj["metadata"]:
            return await self._remove(obj, finalizers) if ours else None
        if not ours:
            await self.writer.finalizers(obj, [*finalizers, self.kind.finalizer])
            obj = self.writer.cache.get(key) or obj
        try:
            host = self.kind.host(obj)
        except Rejected as error:
            self.events.warning(obj, "InvalidSpec", str(error))
            return None
        return await self._probe(obj, host)

    async def _probe(self, obj: Object, host: DeclaredHost) -> timedelta:
        driver = self.drivers.named(host.name)
        facts: HostFacts | None = None
        if driver is None:
            claim = Condition("Ready", "False", "NoDriver", f"driver {host.driver} cannot be used")
        else:
            facts, claim = await _ask(driver, host.name)
            if facts is not None:
                self._seen_at[host.name] = self.now()
                facts = told_once(facts, self.holders, self.ledger)
        marks, followed = await self._node(host)
        claims = {"Ready": claim, "NodeFollowed": followed, "Drained": self._drained(host)}
        await self._write(obj, host, facts, claims, marks)
        if host.drain is not None:
            self._leaving.add(Key("", host.name))  # each machine that leaves is progress
        return self.interval if facts else min(TROUBLE_AGAIN, self.interval)

    def _drained(self, host: DeclaredHost) -> Condition | None:
        """Say how far the machines have left a host that is drained."""
        if host.drain is None:
            return None
        occupancy, moving = self.ledger.occupancy(host.name), self.ledger.moves_from(host.name)
        left = occupancy.there
        if not occupancy:
            return Condition("Drained", "True", "Drained", "no machine is left on it")
        if occupancy.coming:  # ordered before the drain: it comes, and then leaves again
            return Condition("Drained", "False", "Draining", str(occupancy))
        message = f"{len(left)} machines are left, {len(moving)} of them on their way"
        if len(left) == 1:
            message = f"1 machine is left, {'on its way' if moving else 'which stays for now'}"
        return Condition("Drained", "False", "Draining", message)

    async def _node(self, host: DeclaredHost) -> tuple[NodeMarks, Condition | None]:
        """Return how the host's node is marked; what was known stays while it cannot be read."""
        if host.node is None:
            return NodeMarks(), None
        try:
            return await self.marks_of(host.node), None
        except Rejected as error:
            return NodeMarks(), Condition("NodeFollowed", "False", error.reason, str(error))
        except Unreachable as error:
            return host.node_marks, Condition("NodeFollowed", "Unknown", error.reason, str(error))

    async def _write(
        self,
        obj: Object,
        host: DeclaredHost,
        facts: HostFacts | None,
        claims: Mapping[str, Condition | None],
        marks: NodeMarks,
    ) -> None:
        claim = claims["Ready"]
        assert claim is not None
        report = HostReport(
            conditions=merge_conditions(_said_before(host, claim), claims, self.now()),
            facts=facts,
            allocatable=facts.allocatable(host.overcommit) if facts else None,
            rooms=facts.rooms(host.overcommit) if facts else (),
            machines=len(self.ledger.machines_on(host.name)),
            seen_at=self._seen_at.get(host.name),
            node_marks=marks,
            capabilities=self._capabilities(host.name) if facts else None,
            evictions=self._evictions(host, marks),
        )
        before = next((old.status for old in host.conditions if old.type == "Ready"), None)
        if await self.writer.status(obj, self.kind.status(obj, report)) and before != claim.status:
            say = self.events.normal if claim.status == "True" else self.events.warning
            say(obj, claim.reason, claim.message)

    def _evictions(self, host: DeclaredHost, marks: NodeMarks) -> tuple[Eviction, ...]:
        """Say since when each taint is known that has machines leave."""
        known = {each.taint: each for each in host.evictions}
        now = self.now()
        return tuple(
            known.get(taint) or Eviction(taint, now)
            for taint in dict.fromkeys(evicting((*host.taints, *marks.taints)))
        )

    def _capabilities(self, name: str) -> frozenset[str] | None:
        driver = self.drivers.named(name)
        return frozenset(map(str, driver.capabilities)) if driver else None

    async def _remove(self, obj: Object, finalizers: list[str]) -> timedelta | None:
        name = obj["metadata"]["name"]
        if occupancy := self.ledger.occupancy(name):
            # Without the host its machines could be neither reached nor removed.
            message = f"{occupancy}; it goes when they have gone"
            self.events.warning(obj, "MachinesLeft", message)
            self._leaving.add(Key("", name))
            return None
        left = [entry for entry in finalizers if entry != self.kind.finalizer]
        await self.writer.finalizers(obj, left)
        return None


def _said_before(host: DeclaredHost, claim: Condition) -> tuple[Condition, ...]:
    """Return what was said of a host: since when it is silent does not count what it told before.

    Its guests may be started elsewhere when it was silent for long enough.
    """
    if claim.reason != Unreachable.reason:
        return host.conditions
    return tuple(
        each for each in host.conditions if each.type != "Ready" or each.reason == claim.reason
    )


async def _ask(driver: Driver, name: str) -> tuple[HostFacts | None, Condition]:
    try:
        async for facts in driver.hosts():
            if facts.name == name:
                return facts, Condition("Ready", "True", "HostReady", "the host answers")
    except DriverError as error:
        return None, Condition("Ready", "False", error.reason, str(error))
    return None, Condition("Ready", "False", "HostUnknown", f"the driver knows no host {name}")
