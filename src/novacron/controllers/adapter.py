"""Joins runtime and core: fetch, translate, reconcile, and one write of what became of it.

The only file that knows both an API object and a machine's round.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from novacron.controllers.pace import Pace
from novacron.controllers.ports import AddressedKind, MachineKind, PlacedKind, RelocatedKind
from novacron.controllers.prospects import Prospects
from novacron.controllers.reconciler import MachineReconciler
from novacron.controllers.relocating import is_over, order_for
from novacron.controllers.round import Round
from novacron.controllers.summary import broken, summarise, with_devices
from novacron.controllers.tied import ties_of
from novacron.core.errors import Rejected, Unreachable
from novacron.core.machine import Holding, Machine, Observed, Power, Resources
from novacron.core.placement import placement_of
from novacron.core.report import MachineReport
from novacron.core.usage import NOW, due_in
from novacron.runtime.errors import ApiError, LeaseLost
from novacron.runtime.events import Events
from novacron.runtime.resource import Key, Object
from novacron.runtime.writer import Writer

__all__ = ["MachineController"]

log = logging.getLogger(__name__)

UNSURE_AGAIN = timedelta(seconds=5)
AT_ONCE = timedelta(0)


@dataclass(slots=True)
class MachineController:
    """Reconciles the objects of one kind that declare machines."""

    kind: MachineKind
    writer: Writer
    reconciler: MachineReconciler
    events: Events
    now: Callable[[], datetime]
    locate: Callable[[str], Awaitable[str | None]]
    noted: Callable[[str, Observed], None]
    prospects: Prospects
    _usage_written: dict[str, datetime] = field(default_factory=dict)
    _pace: Pace = field(default_factory=Pace)
    _addressed: AddressedKind | None = field(init=False)
    _relocated: RelocatedKind | None = field(init=False)

    def __post_init__(self) -> None:
        # Asked once: what a kind can do is looked up name by name, and there are many rounds.
        self._addressed = self.kind if isinstance(self.kind, AddressedKind) else None
        self._relocated = self.kind if isinstance(self.kind, RelocatedKind) else None

    async def reconcile(self, key: Key) -> timedelta | None:
        """Take one object as far as it goes now."""
        obj = self.writer.cache.get(key)
        if obj is None:
            return None
        metadata = obj["metadata"]
        finalizers = metadata.get("finalizers") or []
        ours = self.kind.finalizer in finalizers
        if "deletionTimestamp" in metadata:
            return await self._remove(obj, finalizers) if ours else None
        if self.kind.holding(obj) is None:
            return None  # the placer's write will wake it
        if not ours and self._addressed is None:
            # The placer writes it with the placement, so somebody took it away.
            await self.writer.finalizers(obj, [*finalizers, self.kind.finalizer])
            obj = self.writer.cache.get(key) or obj
        return await self._advance(obj)

    async def _advance(self, obj: Object) -> timedelta | None:
        try:
            machine = self.kind.machine(obj)
        except Rejected as error:
            if await self.writer.status(obj, self.kind.refusal(obj, error, self.now())):
                self.events.warning(obj, error.reason, str(error))
            return error.again
        if self._addressed is not None and not self._addressed.is_claimed(obj):
            return await self._claim(self._addressed, obj, machine)
        if await self._settled_move(obj, machine):
            return AT_ONCE
        if machine.awaits_placer and machine.move is None:
            return None  # it grants or refuses what is asked for now, and that write wakes us
        try:
            round_ = await self.reconciler.reconcile(machine)
        except (ApiError, LeaseLost, asyncio.CancelledError):
            raise
        except Exception as error:
            await self._write(obj, machine, broken(machine, error, self.now()))
            raise
        return await self._finish(obj, machine, round_)

    async def _claim(self, kind: AddressedKind, obj: Object, machine: Machine) -> timedelta | None:
        """Write down where a machine is made before it is, together with our finalizer."""
        found = await self.reconciler.identity_for(machine)
        if not isinstance(found, str):
            return await self._finish(obj, machine, Round({"Created": found}))
        return await self._advance(await self.writer.replace(kind.claimed(obj, found)))

    async def _settled_move(self, obj: Object, machine: Machine) -> bool:
        """Keep the records of moves; say whether one was written, which wakes us again.

        That of a move that has ended is taken away, with where the machine is by now. A request
        to move between nodes becomes a record here: nobody else has to decide on it.
        """
        if self._relocated is not None:
            order = order_for(machine)
            if order is None and not is_over(machine):
                return False
            await self.writer.replace(self._relocated.relocating(obj, order))
            return True
        if machine.move is not None:
            return await self._recorded_again(obj, machine)
        cancelled = machine.move_cancelled and machine.move_request is None
        if not (machine.move_over or cancelled):
            return False
        assert isinstance(self.kind, PlacedKind)  # nobody else moves machines
        await self.writer.replace(self.kind.moved(obj, placement_of(machine)))
        return True

    async def _recorded_again(self, obj: Object, machine: Machine) -> bool:
        """Put the record of a move back where something is asked for that has to wait for its end.

        Without it nobody could tell then that a cancellation was of that move, or a request is met.
        """
        if not (machine.move_cancelled or machine.move_request):
            return False
        assert isinstance(self.kind, PlacedKind)  # nobody else moves machines
        recorded = self.kind.recorded(obj)
        if recorded is obj:
            return False
        await self.writer.replace(recorded)
        return True

    async def _remove(self, obj: Object, finalizers: list[str]) -> timedelta | None:
        try:
            holding = self.kind.holding(obj) or await self._lost(obj)
        except Unreachable as error:
            self.events.warning(obj, "HostUnreachable", f"may still exist somewhere: {error}")
            return UNSURE_AGAIN
        if holding is not None:
            machine = self._doomed(obj, holding)
            round_ = await self.reconciler.reconcile(machine)
            if not round_.settled:
                return await self._finish(obj, machine, round_)
            self._tell(obj, round_)
            _log(round_)
        self._usage_written.pop(obj["metadata"]["uid"], None)
        self._pace.gone(obj["metadata"]["uid"])
        self.prospects.gone(obj["metadata"]["uid"])
        left = [name for name in finalizers if name != self.kind.finalizer]
        await self.writer.finalizers(obj, left)
        return None

    async def _lost(self, obj: Object) -> Holding | None:
        # It has our finalizer, so it was placed; where is not on record any more.
        uid = obj["metadata"]["uid"]
        host = await self.locate(uid)
        return Holding(uid, host, Resources()) if host else None

    def _doomed(self, obj: Object, holding: Holding) -> Machine:
        # Whatever its spec says by now, the machine there has to go.
        try:
            machine = self.kind.machine(obj)
            return replace(machine, host=holding.host)
        except Rejected:
            metadata = obj["metadata"]
            return Machine(
                uid=holding.uid,
                namespace=metadata.get("namespace", ""),
                name=metadata["name"],
                wanted=holding.resources,
                image="",
                power=Power.OFF,
                deleting=True,
                host=holding.host,
                reserved=holding.resources,
            )

    async def _finish(self, obj: Object, machine: Machine, round_: Round) -> timedelta | None:
        now = self.now()
        runs = round_.seen is not None and round_.seen.power is Power.ON
        measured = round_.seen.usage if round_.seen and runs else None
        due = due_in(machine.usage, measured, self._usage_written.get(machine.uid), now)
        if machine.awaits_placer:
            # Only a move was gone on with: what is asked for now is still to be looked at.
            machine = replace(machine, generation=machine.seen_generation)
        machine = with_devices(machine, round_.host)
        host = round_.host or machine.host
        obstacle = self.prospects.obstacle(machine, host, ties_of(round_.seen))
        report = summarise(machine, round_, now, write_usage=due == NOW, obstacle=obstacle)
        paced = self._pace.may_wait(machine.uid, machine.last_move, round_.move, now)
        details = self._pace.details_wait(machine, round_, now)
        if not round_.brief and not paced and details is None:
            await self._write(obj, machine, report)
            if round_.move is not None:
                self._pace.written(machine.uid, now)
        if round_.seen is not None and report.host is not None:
            self.noted(report.host, round_.seen)
        # Told only after it was written down: a conflict would have the round done again.
        self._tell(obj, round_)
        _log(round_)
        if machine.relocation is not None and round_.move and round_.move.result:
            return AT_ONCE  # its record is to be taken away, and our own write wakes nobody
        expected = round_.seen.due if round_.seen else None
        soonest = (round_.look_again, due or None, expected, details)
        return min((each for each in soonest if each is not None), default=None)

    def _tell(self, obj: Object, round_: Round) -> None:
        for happening in round_.happened:
            say = self.events.warning if happening.warning else self.events.normal
            say(obj, happening.reason, happening.message)

    async def _write(self, obj: Object, machine: Machine, report: MachineReport) -> None:
        written = await self.writer.status(obj, self.kind.status(obj, machine, report))
        if written and report.write_usage:
            self._usage_written[machine.uid] = self.now()


def _log(round_: Round) -> None:
    step, outcome = next(reversed(round_.outcomes.items()))
    level = logging.INFO if round_.happened else logging.DEBUG
    if log.isEnabledFor(level):
        fields = {"step": step, "outcome": outcome.reason}
        done = "; ".join(happening.message for happening in round_.happened)
        log.log(level, done or outcome.message or outcome.reason, extra={"fields": fields})
