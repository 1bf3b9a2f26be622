"""Takes one machine from one host to another, as the placer's record says.

The machine is its target's only once it is seen there and no longer on its way.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from novacron.controllers.round import HOOK_RUNNING, Round
from novacron.controllers.voyage import (
    AT_ONCE,
    LATER,
    MOVED,
    SOON,
    Sight,
    Silent,
    Voyage,
    has_come,
)
from novacron.core.errors import Busy, DriverError
from novacron.core.machine import Observed, Power
from novacron.core.migration import DISK_LOST, HOST_LOST, LiveMigration, Luggage
from novacron.core.move import MoveProgress, MoveResult
from novacron.core.report import MIGRATING, STOPPING_TO_MOVE
from novacron.core.steps import Wait

__all__ = ["Passage"]

LOOK = timedelta(seconds=1)


@dataclass(slots=True)
class Passage(Voyage):
    """One machine that leaves a host for another in one round.

    ``before_stop`` does what is to be done before a guest is stopped, and says what that waits for.
    """

    grace: timedelta
    before_stop: Callable[[Observed], Awaitable[Wait | None]]

    async def advance(self) -> Round:
        """Take the machine as far as it goes now.

        The old host is asked first: what it has no more has come by the time the new one is asked.
        """
        here = await self._look(self.move.source)
        progress = await self._progress() if isinstance(here, Observed) else None
        if isinstance(here, Observed) and progress is not None:
            return await self._follow(here, progress)
        is_off = self.drivers.is_fenced(self.move.source)
        there = await self._look(self.move.target)
        if isinstance(here, Observed):
            return await self._leave(here, there)
        if isinstance(here, Silent) and is_off and not has_come(there):
            return self._lost_on_the_way(there)
        return await self._left(here, there)

    async def _leave(self, here: Observed, there: Sight) -> Round:
        """Go on with a machine that its old host still has."""
        if has_come(there):
            return await self._settle_in(there)
        if self.machine.move_cancelled:
            return await self._stay(here, MoveResult.CANCELLED, "Cancelled", "as asked")
        if isinstance(there, Silent):
            return await self._stay(here, MoveResult.FAILED, "TargetUnreachable", there.why)
        if self._report.started is None:
            if (full := self.overdrawn()) is not None:
                return await self._stay(here, MoveResult.FAILED, "HostFull", full)
            return self._begins(here)
        return await self._set_off(here)

    async def _left(self, here: Silent | None, there: Sight) -> Round:
        """Go on with a machine that its old host has no more, or does not tell of."""
        if has_come(there):
            return await self._settle_in(there)
        if isinstance(there, Observed) and here is None:
            return self._wait(there, MIGRATING, "about to run there", SOON)
        if here is None and isinstance(there, Silent) and self.drivers.is_fenced(self.move.target):
            return self._lost_on_arrival(there)
        for sight in (here, there):
            if isinstance(sight, Silent):
                return self._wait(None, "HostUnreachable", sight.why, LATER)
        return await self._stay(None, MoveResult.FAILED, "MachineLost", "it is on neither host")

    def _lost_on_the_way(self, there: Sight) -> Round:
        """Give up a move whose source is off, once it is certain that the machine did not come.

        Whoever places it may have it begin anew then, and never while it may run at the target.
        """
        if isinstance(there, Observed):
            return self._wait(there, MIGRATING, "what came of it so far goes again", LOOK)
        if isinstance(there, Silent) and not self.drivers.is_fenced(self.move.target):
            return self._wait_for_target(there)
        message = f"host {self.move.source} is off"
        never = f"did not get from host {self.move.source} to {self.move.target}: {message}"
        self._tell("MigrationFailed", never, warning=True)
        return self._give_up(HOST_LOST, message)

    def _lost_on_arrival(self, there: Silent) -> Round:
        """Have a machine be its new host's which has taken it along when it was switched off."""
        left = self.machine.leftovers | {self.move.source}
        return self._end(None, MoveResult.SUCCEEDED, HOST_LOST, there.why, left=left)

    async def withdraw(self) -> Round | None:
        """Have a machine that is to be removed not move any more; None once it does not.

        One that has come is its new host's: what it has there is newer than what it left.
        """
        here, source = await self._look(self.move.source), self._mover(self.move.source)
        if source and isinstance(here, Observed) and await self._progress() is not None:
            self.may_act()
            await source.cancel_move(self.machine.ref)
            return self._wait(here, MIGRATING, "is cancelled", SOON)
        there = await self._look(self.move.target)
        if not has_come(there):
            return None
        done = await self._settle_in(there)
        if done.outcomes[MOVED].reason != DISK_LOST:
            return done
        # Nobody needs that disk any more: it is not waited for.
        left = self.machine.leftovers | {self.move.source}
        return self._end(there, MoveResult.SUCCEEDED, "", "", MoveProgress(), left)

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
            return await self._failed(here, error)

    async def _failed(self, here: Observed, error: DriverError) -> Round:
        """Say why it stays; but of what a host has that has just fallen silent nobody can tell."""
        if isinstance(silent := await self._look(self.move.source), Silent):
            return self._wait(None, "HostUnreachable", silent.why, LATER)
        return await self._stay(here, MoveResult.FAILED, error.reason, str(error))

    def _begins(self, here: Observed) -> Round:
        """Have it written down that the move begins before anything is done for it.

        Whoever replaces the object takes the record away, and then its status is all that is known.
        """
        self._tell("Migrating", f"moves from host {self.move.source} to {self.move.target}")
        return self._wait(here, MIGRATING, "begins", AT_ONCE)

    async def _begin(self, here: Observed, source: LiveMigration, target: LiveMigration) -> Round:
        luggage = await source.pack(self.machine.ref)
        self.may_act()
        welcome = await target.welcome(self._plan(), luggage)
        if self._is_to_be_stopped(here):  # not for nothing: it could be taken in
            return await self._stop_first(here, source)
        destination = replace(welcome, move=self.move.id)  # no older order's failure is its own
        self.may_act()
        await source.send(self.machine.ref, destination, self.machine.move_policy)
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
        left = await self._clear(self.move.source, self.move.target, was_home=True)
        seen = await self._observe(self.move.target) or there
        self._tell("Migrated", f"moved from host {self.move.source} to {self.move.target}")
        return self._end(seen, MoveResult.SUCCEEDED, "", "", progress, left)

    async def _arrived(self, target: LiveMigration) -> MoveProgress:
        luggage = await self._left_behind()
        took = await target.arrived(self._plan(), luggage)
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
        if here is not None and source is not None:
            try:
                await source.cancel_move(self.machine.ref)
            except DriverError as error:
                return self._wait(here, error.reason, str(error), LATER)
        left = await self._clear(self.move.target, self.move.source, was_home=False)
        stays = f"stays on host {self.move.source}: {message}"
        self._tell(f"Migration{result}", stays, warning=result is MoveResult.FAILED)
        ended = self._end(here, result, reason, message, MoveProgress(), left)
        return replace(ended, unreached=left & {self.move.target}) if here else ended
