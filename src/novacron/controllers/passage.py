"""Takes one machine from one host to another, as the placer's record says.

Nothing is remembered between rounds: where the machine is and whether it is being sent is looked
up on both hosts each time, so a process that died in the middle of it is followed by one that goes
on. The machine is its target's only once it is seen there and no longer on its way.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypeGuard

from novacron.controllers.round import HOOK_RUNNING, Happening, Round
from novacron.core.driver import Drivers
from novacron.core.errors import Busy, DriverError, Unreachable
from novacron.core.machine import Machine, MachinePlan, MachineRef, Observed, Power
from novacron.core.migration import LiveMigration, Luggage
from novacron.core.move import Move, MoveProgress, MoveReport, MoveResult
from novacron.core.report import MIGRATING, STOPPING_TO_MOVE
from novacron.core.steps import Done, Outcome, Wait

__all__ = ["MOVED", "Passage", "Silent"]

MOVED = "Moved"
AT_ONCE = timedelta(0)
SOON = timedelta(milliseconds=200)
LOOK = timedelta(seconds=1)
LATER = timedelta(seconds=5)
ON_THE_WAY = ("move", "arrive")


@dataclass(frozen=True, slots=True)
class Silent:
    """A host that cannot be asked, and why."""

    why: str


Sight = Observed | Silent | None


def _has_come(there: Sight) -> TypeGuard[Observed]:
    """Say whether a machine is at its new host for good."""
    return isinstance(there, Observed) and there.changing not in ON_THE_WAY


@dataclass(slots=True)
class Passage:
    """One machine between two hosts in one round.

    ``before_stop`` does what is to be done before a guest is stopped, and says what that waits for.
    """

    machine: Machine
    move: Move
    drivers: Drivers
    may_act: Callable[[], object]
    now: datetime
    grace: timedelta
    before_stop: Callable[[Observed], Awaitable[Wait | None]]
    happened: list[Happening] = field(default_factory=list)

    async def advance(self) -> Round:
        """Take the machine as far as it goes now."""
        if self.move.lost:
            return await self._begin_anew()
        there, here = await self._look(self.move.target), await self._look(self.move.source)
        progress = await self._progress() if isinstance(here, Observed) else None
        if isinstance(here, Observed) and progress is not None:
            return await self._follow(here, progress)
        if isinstance(here, Observed):
            return await self._leave(here, there)
        return await self._left(here, there)

    async def _leave(self, here: Observed, there: Sight) -> Round:
        """Go on with a machine that its old host still has."""
        if _has_come(there):
            return await self._settle_in(there)
        if self.machine.move_cancelled:
            return await self._stay(here, MoveResult.CANCELLED, "Cancelled", "as asked")
        if isinstance(there, Silent):
            return await self._stay(here, MoveResult.FAILED, "TargetUnreachable", there.why)
        return await self._set_off(here)

    async def _left(self, here: Silent | None, there: Sight) -> Round:
        """Go on with a machine that its old host has no more, or does not tell of."""
        if _has_come(there):
            return await self._settle_in(there)
        if isinstance(there, Observed) and here is None:
            return self._wait(there, MIGRATING, "about to run there", SOON)
        for sight in (here, there):
            if isinstance(sight, Silent):
                return self._wait(None, "HostUnreachable", sight.why, LATER)
        return await self._stay(None, MoveResult.FAILED, "MachineLost", "it is on neither host")

    async def withdraw(self) -> Outcome | None:
        """Have a machine that is to be removed not move any more; None once it does not."""
        source = self._mover(self.move.source)
        here = await self._look(self.move.source)
        if source and isinstance(here, Observed) and await self._progress() is not None:
            self.may_act()
            await source.cancel_move(self.machine.ref)
            return Wait("Cancelling", SOON, f"its move to host {self.move.target} is cancelled")
        return None

    async def _set_off(self, here: Observed) -> Round:
        """Begin the move, or hear what went wrong with it."""
        source, target = self._mover(self.move.source), self._mover(self.move.target)
        if source is None or target is None:
            reason = "its driver cannot move machines, or the host is not declared any more"
            return await self._stay(here, MoveResult.FAILED, "DriverCannotMigrate", reason)
        if here.power is Power.OFF and self.move.live:
            return await self._stay(here, MoveResult.FAILED, "GuestStopped", "it does not run")
        self.may_act()
        try:
            if self._is_to_be_stopped(here) and self._is_stopping:
                return await self._stop_first(here, source)
            return await self._begin(here, source, target)
        except Busy as error:
            return self._wait(here, MIGRATING, str(error), error.after)
        except DriverError as error:
            return await self._stay(here, MoveResult.FAILED, error.reason, str(error))

    async def _begin(self, here: Observed, source: LiveMigration, target: LiveMigration) -> Round:
        luggage = await source.pack(self.machine.ref)
        destination = await target.welcome(self._plan(), luggage)
        if self._is_to_be_stopped(here):  # not for nothing: it could be taken in
            return await self._stop_first(here, source)
        await source.send(self.machine.ref, destination, self.machine.move_policy)
        if self._report.started is None:
            self._tell("Migrating", f"moves from host {self.move.source} to {self.move.target}")
        return self._wait(replace(here, changing="move"), MIGRATING, "begins", SOON)

    def _is_to_be_stopped(self, here: Observed) -> bool:
        return here.power is Power.ON and not self.move.live

    @property
    def _is_stopping(self) -> bool:
        """Say whether the guest was asked to stop, or something is done for it before that."""
        claim = self.machine.condition(MOVED)
        return claim is not None and claim.reason in (HOOK_RUNNING, STOPPING_TO_MOVE)

    async def _stop_first(self, here: Observed, source: LiveMigration) -> Round:
        """Stop a guest that cannot be moved while it runs; whoever asked agreed to that."""
        driver = self.drivers.named(self.move.source)
        assert driver is not None
        if (waits := await self.before_stop(here)) is not None:
            return self._wait(here, waits.reason, waits.message, waits.after or LOOK)
        await source.cancel_move(self.machine.ref)  # one that is only up to be sent hears nothing
        claim = self.machine.condition(MOVED)
        asked = claim.probed if claim and claim.reason == STOPPING_TO_MOVE else None
        force = asked is not None and self.now - asked >= self.grace
        if force or not here.changing:
            self.may_act()
            await driver.set_power(self.machine.ref, Power.OFF, force=force)
        return self._wait(here, STOPPING_TO_MOVE, "is stopped first", LOOK)

    async def _progress(self) -> MoveProgress | None:
        """Tell how far the machine is, if it is being sent."""
        source = self._mover(self.move.source)
        return await source.movement(self.machine.ref) if source else None

    async def _follow(self, here: Observed, progress: MoveProgress) -> Round:
        source = self._mover(self.move.source)
        assert source is not None
        if self.machine.move_cancelled:
            self.may_act()
            await source.cancel_move(self.machine.ref)
            return self._wait(here, MIGRATING, "is cancelled", SOON)
        return self._wait(here, MIGRATING, "is under way", LOOK, progress)

    async def _settle_in(self, there: Observed) -> Round:
        """Make the machine its new host's own, and remove what is left where it was."""
        target = self._mover(self.move.target)
        assert target is not None
        self.may_act()
        try:
            progress = await self._arrived(target)
        except DriverError as error:
            after = error.after if isinstance(error, Busy) else LATER
            return self._wait(there, error.reason, str(error), after)
        left = await self._clear(self.move.source, self.move.target)
        seen = await self._observe(self.move.target) or there
        self._tell("Migrated", f"moved from host {self.move.source} to {self.move.target}")
        return self._end(seen, MoveResult.SUCCEEDED, "", "", progress, left)

    async def _arrived(self, target: LiveMigration) -> MoveProgress:
        luggage = await self._left_behind()
        took = await target.arrived(self._plan(), luggage, live=self.move.live)
        # A host that it came to may know of its memory only, the one that it left of disks too.
        sent = (took.transferred_bytes, self._report.progress.transferred_bytes)
        return replace(took, transferred_bytes=max(filter(None, sent), default=None))

    async def _left_behind(self) -> Luggage | None:
        source = self._mover(self.move.source)
        try:
            return await source.pack(self.machine.ref) if source else None
        except DriverError:
            return None  # a record of what the guest once said is not worth a machine

    async def _stay(
        self, here: Observed | None, result: MoveResult, reason: str, message: str
    ) -> Round:
        """End the move with the machine where it was, and nothing of it where it did not go."""
        self.may_act()
        source = self._mover(self.move.source)
        if here is not None and source is not None and not self.move.live:
            try:
                await source.cancel_move(self.machine.ref)
            except DriverError as error:
                return self._wait(here, error.reason, str(error), LATER)
        left = await self._clear(self.move.target, self.move.source)
        stays = f"stays on host {self.move.source}: {message}"
        self._tell(f"Migration{result}", stays, warning=result is MoveResult.FAILED)
        return self._end(here, result, reason, message, MoveProgress(), left)

    async def _begin_anew(self) -> Round:
        """Have a machine whose host is switched off on another, with the disks that both reach."""
        target, driver = self._mover(self.move.target), self.drivers.named(self.move.target)
        seen = await self._look(self.move.target)
        if isinstance(seen, Silent) or target is None or driver is None:
            why = seen.why if isinstance(seen, Silent) else "its driver cannot take machines over"
            return self._end(None, MoveResult.FAILED, "TargetUnreachable", why)
        if seen is None and (disk := await target.out_of_reach(self._plan())) is not None:
            message = f"host {self.move.target} cannot reach {disk}"
            stays = f"does not begin anew, though host {self.move.source} is off: {message}"
            self._tell("MigrationFailed", stays, warning=True)
            return self._end(None, MoveResult.FAILED, "DisksOutOfReach", message)
        if seen is None or seen.abandoned:
            self.may_act()
            try:
                await driver.create(self._plan())
            except Busy as error:
                return self._wait(None, MIGRATING, str(error), error.after)
            except DriverError as error:
                return self._end(None, MoveResult.FAILED, error.reason, str(error))
            seen = await driver.observe(self.machine.ref_on(self.move.target))
        if seen is None or seen.changing == "create":
            return self._wait(seen, MIGRATING, "is set up there", SOON)
        lost = self.move.source
        self._tell("Recovered", f"begins anew on host {self.move.target}, because {lost} is off")
        left = self.machine.leftovers | {lost}
        return self._end(seen, MoveResult.SUCCEEDED, "HostLost", f"host {lost} is off", left=left)

    async def _clear(self, host: str, home: str) -> frozenset[str]:
        """Remove what is left on a host; return all hosts where that is still to be done."""
        driver, keeper = self._mover(host), self._mover(home)
        if driver is None:
            return self.machine.leftovers
        try:
            if self.drivers.trouble(host) or keeper is None:
                raise Unreachable(f"host {host} cannot be cleared now")
            kept = await keeper.pack(self.machine.ref_on(home))
            await driver.clear_out(self.machine.ref_on(host), kept)
        except DriverError:
            return self.machine.leftovers | {host}
        return self.machine.leftovers - {host}

    def _plan(self) -> MachinePlan:
        there = self.machine.ref_on(self.move.target)
        return replace(self.machine.plan(), ref=there, devices=self.move.devices)

    def _mover(self, host: str) -> LiveMigration | None:
        driver: object = self.drivers.named(host)
        return driver if isinstance(driver, LiveMigration) else None

    async def _look(self, host: str) -> Sight:
        driver = self.drivers.named(host)
        if driver is None:
            return Silent(f"host {host} is not declared any more")
        if trouble := self.drivers.trouble(host):
            return Silent(trouble)
        try:
            return await driver.observe(self._ref(host))
        except Unreachable as error:
            return Silent(str(error))

    async def _observe(self, host: str) -> Observed | None:
        seen = await self._look(host)
        return seen if isinstance(seen, Observed) else None

    def _ref(self, host: str) -> MachineRef:
        return self.machine.ref_on(host)

    @property
    def _report(self) -> MoveReport:
        """What was written about this very move."""
        written = self.machine.last_move
        ours = written is not None and written.id == self.move.id
        return written if written and ours else self._fresh()

    def _fresh(self) -> MoveReport:
        return MoveReport(self.move.id, self.move.source, self.move.target)

    def _wait(
        self,
        seen: Observed | None,
        reason: str,
        said: str,
        after: timedelta,
        progress: MoveProgress | None = None,
    ) -> Round:
        report = replace(
            self._report,
            started=self._report.started or self.now,
            progress=progress or self._report.progress,
        )
        message = f"moves from host {self.move.source} to {self.move.target}: {said}"
        outcome = Wait(reason, after, message)
        return Round({MOVED: outcome}, seen, happened=tuple(self.happened), move=report)

    def _end(
        self,
        seen: Observed | None,
        result: MoveResult,
        reason: str,
        message: str,
        progress: MoveProgress | None = None,
        left: frozenset[str] | None = None,
    ) -> Round:
        report = replace(
            self._report,
            started=self._report.started or self.now,
            ended=self.now,
            progress=progress or self._report.progress,
            result=result,
            reason=reason,
            message=message,
        )
        arrived = result is MoveResult.SUCCEEDED
        return Round(
            {MOVED: Done("Settled", message, after=AT_ONCE)},
            seen,
            happened=tuple(self.happened),
            host=self.move.target if arrived else None,
            move=report,
            leftovers=left,
        )

    def _tell(self, reason: str, message: str, *, warning: bool = False) -> None:
        self.happened.append(Happening(reason, message, warning))
