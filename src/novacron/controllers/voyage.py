"""One machine between two hosts in one round: what every way of getting there has in common.

Nothing is remembered between rounds: where the machine is and whether it is being sent is looked
up on both hosts each time, so a process that died in the middle of it is followed by one that goes
on.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypeGuard

from novacron.controllers.round import Happening, Round
from novacron.core.driver import Drivers
from novacron.core.errors import DriverError, Unreachable
from novacron.core.machine import Machine, MachinePlan, MachineRef, Observed
from novacron.core.migration import LiveMigration
from novacron.core.move import Move, MoveProgress, MoveReport, MoveResult
from novacron.core.steps import Done, Wait

__all__ = ["AT_ONCE", "LATER", "MOVED", "SOON", "Sight", "Silent", "Voyage", "has_come", "look"]

MOVED = "Moved"
AT_ONCE = timedelta(0)
SOON = timedelta(milliseconds=200)
LATER = timedelta(seconds=5)
ON_THE_WAY = ("move", "arrive")


@dataclass(frozen=True, slots=True)
class Silent:
    """A host that cannot be asked, and why."""

    why: str


Sight = Observed | Silent | None


def has_come(there: Sight) -> TypeGuard[Observed]:
    """Say whether a machine is at its new host for good."""
    return isinstance(there, Observed) and there.changing not in ON_THE_WAY


async def look(drivers: Drivers, ref: MachineRef) -> Sight:
    """Return what a host has of a machine, or that nobody can tell."""
    driver = drivers.named(ref.host)
    if driver is None:
        if drivers.is_declared(ref.host):
            return Silent(f"host {ref.host} cannot be used as it is declared")
        return Silent(f"host {ref.host} is not declared any more")
    if trouble := drivers.trouble(ref.host):
        return Silent(trouble)
    try:
        return await driver.observe(ref)
    except Unreachable as error:
        return Silent(str(error))


@dataclass(slots=True)
class Voyage:
    """One machine between two hosts in one round."""

    machine: Machine
    move: Move
    drivers: Drivers
    may_act: Callable[[], object]
    now: datetime
    overdrawn: Callable[[], str | None]
    happened: list[Happening] = field(kw_only=True, default_factory=list)

    async def _look(self, host: str) -> Sight:
        return await look(self.drivers, self.machine.ref_on(host))

    async def _observe(self, host: str) -> Observed | None:
        seen = await self._look(host)
        return seen if isinstance(seen, Observed) else None

    def _mover(self, host: str) -> LiveMigration | None:
        driver: object = self.drivers.named(host)
        return driver if isinstance(driver, LiveMigration) else None

    def _plan(self) -> MachinePlan:
        there = self.machine.ref_on(self.move.target)
        return replace(self.machine.plan(), ref=there, devices=self.move.devices)

    async def _clear(self, host: str, home: str, *, was_home: bool) -> frozenset[str]:
        """Remove what is left on a host; return all hosts where that is still to be done.

        Disks that ``home`` sees too are its own: of a host and itself only the machine goes.
        """
        driver, keeper = self._mover(host), self._mover(home)
        if driver is None:
            unusable = self.drivers.is_declared(host) and self.drivers.named(host) is None
            return self.machine.leftovers.union({host} if unusable else ())
        try:
            if self.drivers.trouble(host) or keeper is None:
                raise Unreachable(f"host {host} cannot be cleared now")
            kept = await keeper.pack(self.machine.ref_on(home))
            self.may_act()
            await driver.clear_out(self.machine.ref_on(host), kept, was_home=was_home)
        except DriverError:
            return self.machine.leftovers | {host}
        return self.machine.leftovers - {host}

    @property
    def _report(self) -> MoveReport:
        """What was written about this very move."""
        written = self.machine.last_move
        ours = written is not None and written.id == self.move.id
        return written if written and ours else self._fresh()

    def _fresh(self) -> MoveReport:
        move = self.move
        return MoveReport(move.id, move.source, move.target, mode=move.mode, devices=move.devices)

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

    def _wait_for_target(self, silent: Silent) -> Round:
        said = f"{silent.why}; it may run there, so it is started nowhere else"
        return self._wait(None, "HostUnreachable", said, LATER)

    def _give_up(self, reason: str, message: str) -> Round:
        """End a move to a host that the machine never got to; something may be left of it there."""
        target = frozenset({self.move.target})
        left = self.machine.leftovers | target
        ended = self._end(None, MoveResult.FAILED, reason, message, left=left)
        return replace(ended, unreached=target)

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
            devices=(),
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
