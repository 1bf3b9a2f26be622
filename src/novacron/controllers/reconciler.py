"""Takes one placed machine through its steps, with the driver that reaches its host."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial

from novacron.controllers.hooks import before_stop
from novacron.controllers.leftovers import come_after_all, removed_from, tidied
from novacron.controllers.machine import DELETION, HELD, REMOVED, lifecycle
from novacron.controllers.passage import Passage
from novacron.controllers.recovery import Recovery
from novacron.controllers.relocating import relocate
from novacron.controllers.requests import Requests
from novacron.controllers.restarts import Restarts
from novacron.controllers.round import Happening, Round, Scope
from novacron.controllers.snapshots import Tended, tend
from novacron.controllers.voyage import MOVED
from novacron.core.driver import Driver, Drivers, Identified
from novacron.core.errors import Busy, DriverError, Unreachable
from novacron.core.machine import Machine, Observed
from novacron.core.move import Move, MoveReport
from novacron.core.report import STOPPING_TO_MOVE
from novacron.core.steps import Blocked, Done, Step, Wait, run_steps
from novacron.core.volume import Hold

__all__ = ["MachineReconciler"]


LATER = timedelta(seconds=10)
MUCH_LATER = timedelta(seconds=60)
OTHER_HOST = "OtherHost"
OUT_OF_REACH = frozenset({"HostUnreachable", "HostTrouble", "HostUnknown", OTHER_HOST})


def utc_now() -> datetime:
    """Tell the time, to compare with when something was written down."""
    return datetime.now(UTC)


def not_listed(host: str, uid: str) -> Observed | None:
    """Know of nobody, for a process that never asks for all machines at once."""
    del host, uid
    return None


def by_nobody(machine: Machine, volume: str, least: Hold) -> str | None:
    """Know of nobody else, for a process that follows no other machines."""
    del machine, volume, least
    return None


def by_none(machine: Machine) -> str | None:
    """Know of no promises, for a process that follows no other machines."""
    del machine
    return None


def always() -> None:
    """Allow every order, for a process that is alone."""


@dataclass(frozen=True, slots=True)
class MachineReconciler:
    """Runs the steps of one machine against the driver that reaches its host."""

    drivers: Drivers
    may_act: Callable[[], object] = always
    now: Callable[[], datetime] = utc_now
    grace: timedelta = timedelta(seconds=60)
    restarts: Restarts = field(default_factory=Restarts)
    requests: Requests = field(default_factory=Requests)
    just_listed: Callable[[str, str], Observed | None] = not_listed
    held: Callable[[Machine, str, Hold], str | None] = by_nobody
    overdrawn: Callable[[Machine], str | None] = by_none
    _met: set[str] = field(default_factory=set)

    async def reconcile(self, machine: Machine) -> Round:
        """Take one machine as far as it goes now."""
        if machine.deleting:
            return await self._removed(machine)
        try:
            if (moved := await self._moved(machine)) is not None:
                return moved
        except DriverError as error:
            return Round({MOVED: _silent(error)})
        done = await self._steps(machine, lifecycle(machine))
        if machine.leftovers and done.seen is not None:
            return await tidied(machine, done, self.drivers, self.may_act)
        return done

    async def _moved(self, machine: Machine) -> Round | None:
        """Go on with a move, or find that one ended which was given up."""
        if machine.move is not None:
            return await self._voyage(machine, machine.move).advance()
        return await self._come_after_all(machine)

    async def _come_after_all(self, machine: Machine) -> Round | None:
        if not machine.unreached:
            return None
        return await come_after_all(machine, self.drivers, self.may_act)

    async def identity_for(self, machine: Machine) -> str | Wait | Blocked:
        """Return what tells the host of a machine from others, or why it cannot be reached.

        For machines that nobody placed: one is made only where it can be removed again.
        """
        driver = await self._reached(machine)
        if isinstance(driver, (Wait, Blocked)):
            return driver
        try:
            await driver.observe(machine.ref)
            return await driver.identity() if isinstance(driver, Identified) else ""
        except DriverError as error:
            return _silent(error)

    def _voyage(self, machine: Machine, move: Move) -> Passage | Recovery:
        now, overdrawn = self.now(), partial(self.overdrawn, machine)
        if move.lost:
            return Recovery(machine, move, self.drivers, self.may_act, now, overdrawn)
        happened: list[Happening] = []

        async def before(here: Observed) -> Wait | None:
            driver = self.drivers.named(move.source)
            assert driver is not None
            scope = self._scope(machine, driver, here)
            scope.happened = happened
            return await before_stop(scope, MOVED, STOPPING_TO_MOVE)

        return Passage(
            *(machine, move, self.drivers, self.may_act, now, overdrawn, self.grace, before),
            happened=happened,
        )

    def _scope(self, machine: Machine, driver: Driver, seen: Observed | None) -> Scope:
        return Scope(
            *(machine, driver, seen, self.may_act, self.now(), self.grace),
            restarts=self.restarts,
            requests=self.requests,
            held=partial(self.held, machine),
            overdrawn=partial(self.overdrawn, machine),
        )

    async def _removed(self, machine: Machine) -> Round:
        """Remove a machine from wherever it may be, from its own host last."""
        written_off = machine.abandoned and self.drivers.is_written_off(machine.ref.host)
        try:
            if (withdrawn := await self._withdrawn(machine)) is not None:
                return replace(withdrawn, outcomes={REMOVED: _withdrawing(withdrawn)})
        except DriverError as error:
            return Round({REMOVED: _silent(error)})
        if machine.snapshots.protected and not written_off:
            held = await self._steps(machine, HELD)
            if not held.settled:
                return held
        elsewhere = machine.leftovers | ({machine.move.target} if machine.move else frozenset())
        for host in sorted(elsewhere - {machine.ref.host}):
            if waits := await removed_from(machine, host, self.drivers, self.may_act):
                return Round({REMOVED: waits})
        done = await self._steps(machine, DELETION)
        return _forgotten(machine) if written_off and _is_out_of_reach(done) else done

    async def _withdrawn(self, machine: Machine) -> Round | None:
        """Have a machine that is to be removed be where it is, and on no way; None once it is."""
        if machine.move is not None:
            return await self._voyage(machine, machine.move).withdraw()
        return await self._come_after_all(machine)

    async def _steps(self, machine: Machine, steps: Sequence[Step[Scope]]) -> Round:
        first = steps[0].condition
        driver = await self._reached(machine)
        if isinstance(driver, (Wait, Blocked)):
            return Round({first: driver})
        try:
            seen = None if self._is_new(machine) else await self._look(driver, machine)
        except DriverError as error:
            return Round({first: _silent(error)})
        scope = self._scope(machine, driver, seen)
        outcomes = await run_steps(steps, scope)
        tended = Tended() if machine.deleting else await tend(scope)
        moved = None if machine.deleting else await self._relocated(scope)
        return Round(
            outcomes,
            scope.seen,
            scope.refused,
            tuple(scope.happened),
            tended.report,
            tended.again,
            move=moved,
        )

    async def _reached(self, machine: Machine) -> Driver | Wait | Blocked:
        """Return the driver for a machine, or why it may not be asked at present."""
        driver = self.drivers.named(machine.ref.host)
        if driver is None and self.drivers.is_declared(machine.ref.host):
            message = f"host {machine.host} cannot be used as it is declared: see its status"
            return Wait("HostUnreachable", MUCH_LATER, message)
        if driver is None:
            return _no_host(machine)
        if trouble := self.drivers.trouble(machine.ref.host):
            # Whoever noticed asks again and wakes the machines of a host that is back.
            return Wait("HostUnreachable", MUCH_LATER, trouble)
        if not machine.made_by or not isinstance(driver, Identified):
            return driver
        try:
            still = await driver.is_still(machine.made_by)
        except DriverError as error:
            return _silent(error)
        return driver if still else _another(machine)

    async def _relocated(self, scope: Scope) -> MoveReport | None:
        """Go on with a move between nodes; one that cannot be asked about is asked about later."""
        try:
            return await relocate(scope)
        except DriverError:
            return None

    async def _look(self, driver: Driver, machine: Machine) -> Observed | None:
        listed = self.just_listed(machine.ref.host, machine.uid)
        return listed or await driver.observe(machine.ref)

    def _is_new(self, machine: Machine) -> bool:
        """Say, once, whether a machine cannot be there yet as far as anybody wrote down.

        Nobody needs to look then: whoever makes it finds one that is there all the same.
        """
        if machine.conditions or machine.deleting:
            self._met.discard(machine.uid)
            return False
        new = machine.uid not in self._met
        self._met.add(machine.uid)
        return new


def _no_host(machine: Machine) -> Blocked:
    return Blocked(
        "HostUnknown",
        f"host {machine.host} is not declared any more; declare it again to reach the machine",
    )


def _silent(error: DriverError) -> Wait:
    reason = "HostUnreachable" if isinstance(error, Unreachable) else "HostTrouble"
    return Wait(reason, error.after if isinstance(error, Busy) else LATER, str(error))


def _another(machine: Machine) -> Wait:
    message = (
        f"{machine.host} leads to another one than it was made in ({machine.made_by}): have it "
        "lead there again, or delete the machine and create it anew"
    )
    return Wait(OTHER_HOST, MUCH_LATER, message)


def _withdrawing(withdrawn: Round) -> Wait:
    """Say what the removal of a machine waits for that is on its way; briefly, if it just ended."""
    last = withdrawn.outcomes[MOVED]
    if last.reason in OUT_OF_REACH:
        return Wait(last.reason, last.after, last.message)
    said = f"its move is ended first: {last.message}" if last.message else "its move has ended"
    return Wait("Withdrawing", last.after, said)


def _is_out_of_reach(done: Round) -> bool:
    return any(outcome.reason in OUT_OF_REACH for outcome in done.outcomes.values())


def _forgotten(machine: Machine) -> Round:
    message = f"forgotten as asked; what there may be of it on {machine.host} was not removed"
    happened = (Happening("Abandoned", message, warning=True),)
    return Round({REMOVED: Done("Abandoned", message)}, happened=happened)
