"""The placer: decides where machines go and how much of a host is set aside for each.

Only the leader runs it, and a decision is taken from the table in the same breath as it is
made, so no two machines are ever promised the same room. It is recorded in the object, together
with our finalizer, before anything is made; the machine's own controller acts on the record.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from novacron.controllers.ledger import Ledger
from novacron.controllers.ports import PlacedKind
from novacron.controllers.waiting import Promises, WaitingRoom
from novacron.core.conditions import Condition, merge_conditions
from novacron.core.devices import HostDevice
from novacron.core.errors import Rejected, Unreachable
from novacron.core.machine import Machine, Resources
from novacron.core.placement import Placement
from novacron.core.report import MachineReport, Phase, placed_of
from novacron.runtime.events import Events
from novacron.runtime.queue import Queue
from novacron.runtime.resource import Key, Object
from novacron.runtime.writer import Writer
from novacron.scheduler import Held, Placed, choose, devices_on, fits, one_line

__all__ = ["Placer"]

REFUSED_AGAIN = timedelta(seconds=30)
UNSURE = "HostUnreachable"
FOUND = "FoundOnHost"
UNSURE_AGAIN = timedelta(seconds=5)
AT_ONCE = timedelta(0)
SAID = "; the last one said: "


@dataclass(slots=True)
class Placer:
    """Places the machines of one kind."""

    kind: PlacedKind
    writer: Writer
    ledger: Ledger
    events: Events
    now: Callable[[], datetime]
    queue: Queue
    locate: Callable[[str, Collection[str] | None], Awaitable[str | None]]
    _waiting: WaitingRoom = field(init=False)
    _promises: Promises = field(init=False)
    # Those of them who wait for another machine to be near to.
    _lonely: set[Key] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._waiting = WaitingRoom(self.queue)
        settle = partial(self.ledger.settle, kind=self.kind)
        self._promises = Promises(self.writer, self.ledger.is_assumed, settle)
        self.ledger.on_room(self._waiting.ring)
        self.ledger.on_company(self._company)

    def _company(self) -> None:
        if self._lonely:
            self._waiting.ring()

    def concerns(self, obj: Object) -> bool:
        """Say whether an object is not placed, or asks for something it did not ask for before."""
        return not self.kind.is_settled(obj) or self.kind.holding(obj) is None

    async def reconcile(self, key: Key) -> timedelta | None:
        """Place one machine, or see whether what it asks for now still fits where it is."""
        self._waiting.leave(key)
        self._lonely.discard(key)
        obj = await self._promises.latest(key)
        if obj is None or "deletionTimestamp" in obj["metadata"]:
            return None
        try:
            machine = self.kind.machine(obj)
        except Rejected as error:
            await self._refuse(obj, error)
            return None
        if machine.host is None:
            return await self._place(obj, machine)
        if machine.reserved != machine.wanted and machine.move is None:
            await self._resize(obj, machine)
        return None

    async def _place(self, obj: Object, machine: Machine) -> timedelta | None:
        if self.kind.finalizer in (obj["metadata"].get("finalizers") or ()):
            return await self._recover(obj, machine)
        decision = choose(self.ledger.table, machine)
        if isinstance(decision, Placed):
            because = one_line(decision)
            placement = Placement(decision.host, machine.wanted, decision.devices, because)
            await self._record(obj, machine, placement)
            return None
        key = Key(machine.namespace, machine.name)
        self._waiting.enter(key)
        if machine.affinity and machine.affinity.near:
            self._lonely.add(key)
        message = one_line(decision) + _last_refusal(machine)
        claim = Condition("Placed", "False", "NoHostFits", message)
        await self._write(obj, machine, claim)
        return REFUSED_AGAIN if machine.refused_hosts else None

    async def _recover(self, obj: Object, machine: Machine) -> timedelta | None:
        """Deal with a machine that was placed and has no valid record any more.

        Either its host refused it, or somebody took the record away; then it may exist, and only
        the hosts can tell that it was given to, which are all for who became the leader since.
        """
        try:
            host = await self.locate(machine.uid, self.ledger.given(machine.uid))
        except Unreachable as error:
            message = (
                f"cannot make sure that it does not exist already: {error}; have it answer, or "
                "delete the Host if there is no such one"
            )
            await self._write(obj, machine, Condition("Placed", "False", UNSURE, message))
            return UNSURE_AGAIN
        if host is None:
            await self.writer.replace(self.kind.unplaced(obj))
            return AT_ONCE
        if host in machine.refused_hosts:
            # A record is void as long as its host is said to have turned the machine away.
            message = f"exists on host {host}, which turned it away, and is taken up there again"
            await self._write(obj, machine, Condition("Placed", "False", FOUND, message))
            return UNSURE_AGAIN
        devices = devices_on(self.ledger.table, machine, host)
        if devices is None:
            message = f"exists on host {host}, which has not all its devices free"
            claim = Condition("Placed", "False", "HostFull", message)
            await self._write(obj, machine, claim)
            return UNSURE_AGAIN
        because = f"was found on host {host}"
        await self._record(obj, machine, Placement(host, machine.wanted, devices, because))
        return None

    async def _resize(self, obj: Object, machine: Machine) -> None:
        assert machine.host is not None
        refusal = fits(self.ledger.table, machine.uid, machine.host, machine.wanted)
        if refusal:
            self._waiting.enter(Key(machine.namespace, machine.name))
            message = f"stays as it is on host {machine.host}: {refusal}"
            await self._write(obj, machine, Condition("Placed", "False", "HostFull", message))
            return
        # Until the machine has shrunk it holds the old amount too, which may be that of before it
        # was to shrink the last time; the cache tells when it has.
        reserved, holding = machine.reserved or Resources(), self.kind.holding(obj)
        both = machine.wanted.covering(holding.resources if holding else reserved)
        held = _held(machine, machine.host, both, machine.devices)
        granted = replace(machine, reserved=machine.wanted)
        self.ledger.assume(machine.uid, held)
        await self._promises.keep(obj, partial(self._write, obj, granted, None))

    async def _record(self, obj: Object, machine: Machine, placement: Placement) -> None:
        held = _held(machine, placement.host, machine.wanted, placement.devices)
        self.ledger.assume(machine.uid, held)
        placed = self.kind.placed(obj, placement)
        await self._promises.keep(obj, partial(self.writer.replace, placed))

    async def _write(self, obj: Object, machine: Machine, trouble: Condition | None) -> None:
        claims: dict[str, Condition | None] = {"Placed": trouble or placed_of(machine)}
        nowhere = machine.host is None
        if nowhere and trouble:
            claims["Ready"] = replace(trouble, type="Ready")
        # Hosts that had no room once are asked again after a while, once all others were.
        considered = nowhere and not (trouble and trouble.reason == UNSURE)
        report = MachineReport(
            phase=Phase.PENDING if nowhere else None,
            host=machine.host,
            reserved=machine.reserved,
            refused_hosts=frozenset() if considered else machine.refused_hosts,
            seen=None,
            conditions=merge_conditions(machine.conditions, claims, self.now()),
        )
        written = await self.writer.status(obj, self.kind.status(obj, machine, report))
        if written and trouble:
            self.events.warning(obj, trouble.reason, trouble.message)

    async def _refuse(self, obj: Object, why: Rejected) -> None:
        if await self.writer.status(obj, self.kind.refusal(obj, why, self.now())):
            self.events.warning(obj, why.reason, str(why))


def _held(machine: Machine, host: str, resources: Resources, devices: Iterable[HostDevice]) -> Held:
    addresses = tuple(device.address for device in devices)
    return Held(host, resources, machine.neighbour, addresses)


def _last_refusal(machine: Machine) -> str:
    """Return what the host said that turned the machine away last, which is why it waits."""
    before = machine.condition("Placed")
    if before is None or not machine.refused_hosts:
        return ""
    said = before.message if before.reason == "HostFull" else before.message.partition(SAID)[2]
    return SAID + said if said else ""
