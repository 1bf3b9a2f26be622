"""Has a machine whose host is switched off begin anew on another, as the placer's record says.

Nothing is asked of the lost host, and nothing is begun unless it still is off: what runs there has
no second guest anywhere. Nothing is started on a third one either while the machine may
run on the second: that is certain only of a host that answers, or is known to be off too.
"""

from dataclasses import dataclass

from novacron.controllers.round import Round
from novacron.controllers.voyage import AT_ONCE, LATER, SOON, Sight, Silent, Voyage, has_come
from novacron.core.driver import Driver
from novacron.core.errors import Busy, DriverError, Unreachable
from novacron.core.machine import Observed
from novacron.core.migration import DISKS_OUT_OF_REACH, HOST_BACK, HOST_LOST, LiveMigration
from novacron.core.move import MoveResult
from novacron.core.report import MIGRATING

__all__ = ["Recovery"]


@dataclass(slots=True)
class Recovery(Voyage):
    """One machine of a lost host in one round."""

    async def advance(self) -> Round:
        """Take the machine as far as it goes now."""
        if self._report.started is None and (ended := self._overtaken()) is not None:
            return ended
        target, driver = self._mover(self.move.target), self.drivers.named(self.move.target)
        seen = await self._look(self.move.target)
        if isinstance(seen, Silent):
            return self._nothing_heard(seen)
        if target is None or driver is None:
            why = "its driver cannot take machines over"
            return self._end(None, MoveResult.FAILED, "DriverCannotMigrate", why)
        if self._report.started is None:
            return self._wait(None, MIGRATING, "begins", AT_ONCE)  # written before it is done
        try:
            return await self._begin(target, driver, seen)
        except (Busy, Unreachable) as error:
            after = error.after if isinstance(error, Busy) else LATER
            return self._wait(None, MIGRATING, str(error), after)

    def _overtaken(self) -> Round | None:
        """End what nothing was done for yet, where it was decided by what is so no more."""
        if not self._is_source_off:
            return self._end(None, MoveResult.FAILED, HOST_BACK, self._source_is_back())
        if (full := self.overdrawn()) is not None:
            return self._end(None, MoveResult.FAILED, "HostFull", full)
        return None

    async def _begin(self, target: LiveMigration, driver: Driver, seen: Observed | None) -> Round:
        if seen is None or seen.abandoned:  # no guest was there yet
            return await self._anew(target, driver, seen)
        if self.move.target in self.machine.unreached:  # it came after all, unnoticed
            await target.arrived(self._plan(), None)
        return self._created(seen)

    async def _anew(self, target: LiveMigration, driver: Driver, seen: Observed | None) -> Round:
        """Make it there, unless its host came back, or some disk went out of reach, meanwhile."""
        if not self._is_source_off:
            return self._give_up(HOST_BACK, self._source_is_back())
        # One that was lost with its host before anybody saw it there has no disk to lose.
        disk = None if self.machine.unseen else await target.out_of_reach(self._plan())
        if disk is not None:
            return self._out_of_reach(disk, begun=seen is not None)
        return await self._create(driver)

    @property
    def _is_source_off(self) -> bool:
        return self.drivers.is_fenced(self.move.source)

    def _source_is_back(self) -> str:
        message = f"host {self.move.source} answers again, or is not fenced any more"
        self._tell("MigrationFailed", f"does not begin anew: {message}", warning=True)
        return message

    async def withdraw(self) -> Round | None:
        """Have a machine that is to be removed be where it was begun anew; None if it was not."""
        seen = await self._look(self.move.target)
        return self._recovered(seen) if has_come(seen) else None

    async def _create(self, driver: Driver) -> Round:
        self.may_act()
        try:
            await driver.create(self._plan())
        except (Busy, Unreachable):
            raise
        except DriverError as error:
            left = await self._clear(self.move.target, self.move.target, was_home=False)
            return self._end(None, MoveResult.FAILED, error.reason, str(error), left=left)
        return self._created(await self._look(self.move.target))

    def _created(self, seen: Sight) -> Round:
        if isinstance(seen, Silent):
            return self._nothing_heard(seen)
        if seen is None or seen.changing == "create":
            return self._wait(seen, MIGRATING, "is set up there", SOON)
        return self._recovered(seen)

    def _recovered(self, seen: Observed) -> Round:
        lost = self.move.source
        self._tell("Recovered", f"begins anew on host {self.move.target}, because {lost} is off")
        left = self.machine.leftovers - {self.move.target} | {lost}
        return self._end(seen, MoveResult.SUCCEEDED, HOST_LOST, f"host {lost} is off", left=left)

    def _nothing_heard(self, silent: Silent) -> Round:
        """Give up a host that a machine was to begin anew on, unless it may run there by now."""
        begun = self._report.started is not None
        if begun and not self.drivers.is_fenced(self.move.target):
            return self._wait_for_target(silent)
        if begun:
            return self._give_up("TargetUnreachable", silent.why)
        return self._end(None, MoveResult.FAILED, "TargetUnreachable", silent.why)

    def _out_of_reach(self, disk: str, *, begun: bool) -> Round:
        message = f"host {self.move.target} cannot reach {disk}"
        stays = f"does not begin anew, though host {self.move.source} is off: {message}"
        self._tell("MigrationFailed", stays, warning=True)
        if begun:
            return self._give_up(DISKS_OUT_OF_REACH, message)
        return self._end(None, MoveResult.FAILED, DISKS_OUT_OF_REACH, message)
