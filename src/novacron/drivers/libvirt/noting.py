"""Tells guests of disks that grew once they have an agent, and notes who has data of a guest's.

The latter for machines of earlier operators. Apart from the look that finds who lacks either: to
tell or to write may take as long as whatever else is done to a domain, and what a look has read is
old by the time it ends.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

import libvirt

from novacron.core.errors import DriverError
from novacron.drivers.libvirt.build import Builder
from novacron.drivers.libvirt.deliveries import Work
from novacron.drivers.libvirt.growth import is_to_be_told, tell_of_growth
from novacron.drivers.libvirt.look import Domain, find
from novacron.drivers.libvirt.writing import lacks_note, note_guest

__all__ = ["Noting"]

log = logging.getLogger(__name__)

# After an upgrade all lack it, and nobody is in a hurry.
AT_ONCE = 20


@dataclass(slots=True)
class Noting:
    """Deals with a few machines after each look, by ``work``, while nobody else writes it down.

    ``is_free`` says whether that is so now, and ``turn`` keeps others away meanwhile.
    """

    work: Work
    is_free: Callable[[str], bool]
    turn: Callable[[str], AbstractAsyncContextManager[None]]
    _task: "asyncio.Task[None] | None" = field(default=None, init=False)

    def begin(self, uids: Iterable[str]) -> None:
        """Begin with these, unless those of an earlier look are still under way."""
        lacking = tuple(uids)
        if lacking and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._note(lacking))

    def close(self) -> None:
        """Leave the rest to the next one."""
        if self._task is not None:
            self._task.cancel()

    async def _note(self, uids: Iterable[str]) -> None:
        left = AT_ONCE
        for uid in uids:
            if left and self.is_free(uid):
                left -= await self._is_noted(uid)

    async def _is_noted(self, uid: str) -> bool:
        """Note one, or say that it is not its time."""
        try:
            async with self.turn(uid):
                return bool(await self.work(lambda builder: _noted(builder, uid)))
        except DriverError as error:
            log.debug("what is due of %s is done after a later look: %s", uid, error)
        except Exception:
            log.exception("what is due of %s cannot be done", uid)
        return True  # it took as long as any


def _noted(builder: Builder, uid: str) -> bool:
    domain = find(builder.connection, uid)
    if domain is None:
        return False
    lacking = lacks_note(domain, complete=builder.is_complete(domain))
    untold = is_to_be_told(domain)
    if not (lacking or untold) or _is_at_work(domain):
        return False
    if lacking:
        domain = note_guest(domain)
    if untold:
        tell_of_growth(domain)
    return True


def _is_at_work(domain: Domain) -> bool:
    """Say whether something is done to a guest that whoever writes would have to wait for."""
    if domain.running is None:
        return False
    return bool(domain.handle.jobInfo()[0] != libvirt.VIR_DOMAIN_JOB_NONE)
