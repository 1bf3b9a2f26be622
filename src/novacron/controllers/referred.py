"""Says of an object that machines refer to which ones do, and whether it is of use to them.

Machines come and go by the hundred and each is a change, so that what is written is what there is
by the time it is written, and not more often than a person could read it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from novacron.controllers.ports import ReferredKind
from novacron.runtime.resource import Key
from novacron.runtime.writer import Writer

__all__ = ["ReferredController"]

PAUSE = timedelta(seconds=5)


@dataclass(slots=True)
class ReferredController:
    """Keeps the status of the objects of one kind that is only referred to.

    ``users`` returns the keys of those that refer to an object.
    """

    kind: ReferredKind
    writer: Writer
    users: Callable[[Key], Iterable[Key]]
    now: Callable[[], datetime]
    _written: dict[Key, datetime] = field(default_factory=dict)

    async def reconcile(self, key: Key) -> timedelta | None:
        """Write who refers to an object by now; return when to look again."""
        obj = self.writer.cache.get(key)
        if obj is None:
            self._written.pop(key, None)
            return None
        now = self.now()
        names = sorted(user.name for user in self.users(key))
        status = self.kind.status(obj, names, now)
        if status == (obj.get("status") or {}):
            return None
        since = self._written.get(key)
        if since is not None and (left := since + PAUSE - now) > timedelta(0):
            return left
        await self.writer.status(obj, status)
        self._written[key] = now
        return None
