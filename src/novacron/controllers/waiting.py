"""How decisions wait: machines for room, and the ledger for the API server's answer."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta

from novacron.runtime.errors import Overloaded, Unreachable
from novacron.runtime.queue import Queue
from novacron.runtime.resource import Key, Object, key_of
from novacron.runtime.writer import Writer

__all__ = ["Promises", "WaitingRoom", "Write"]

Write = Callable[[], Awaitable[object]]
# Of which object, and which state of it.
Version = tuple[str, str]

# Room comes and goes in bursts; those who wait for it are asked once a second at most.
PATIENCE = timedelta(seconds=1)


@dataclass(slots=True)
class WaitingRoom:
    """Those who found no room, and are looked at again when there may be some."""

    queue: Queue
    _keys: set[Key] = field(default_factory=set)
    _bell: asyncio.TimerHandle | None = None

    def enter(self, key: Key) -> None:
        """Have one wait."""
        self._keys.add(key)

    def leave(self, key: Key) -> None:
        """Forget one, waiting or not."""
        self._keys.discard(key)

    def ring(self) -> None:
        """Have everybody in it looked at again, soon and all at once."""
        if self._keys and self._bell is None:
            loop = asyncio.get_running_loop()
            self._bell = loop.call_later(PATIENCE.total_seconds(), self._call)

    def _call(self) -> None:
        self._bell = None
        for key in self._keys:
            self.queue.add(key)


@dataclass(slots=True)
class Promises:
    """Writes by which what the ledger assumed becomes true, and those that got no answer.

    One of those may still come to the API server, as long as nothing else was written to its
    object: until then it is made again, and nothing is decided anew, or what it takes could be
    promised to somebody else meanwhile.
    """

    writer: Writer
    is_assumed: Callable[[str], bool]
    settle: Callable[[str, Object | None], None]
    _unanswered: dict[Key, tuple[Version, Write]] = field(default_factory=dict)

    async def latest(self, key: Key) -> Object | None:
        """Return an object by which can be decided: as it is kept, unless something is assumed."""
        obj = self.writer.cache.get(key)
        if obj is None or not self.is_assumed(obj["metadata"]["uid"]):
            self._unanswered.pop(key, None)
            return obj
        # An earlier decision got no answer. The server knows.
        uid, obj = obj["metadata"]["uid"], await self.writer.fresh(key)
        if obj is None or obj["metadata"]["uid"] != uid:
            self._unanswered.pop(key, None)
            return obj
        if await self._renew(obj):
            return self.writer.cache.get(key)
        self.settle(uid, obj)
        return obj

    async def keep(self, obj: Object, write: Write) -> None:
        """Write what was assumed, and settle it once that is done or surely failed."""
        key, version = _at(obj)
        try:
            await write()
        except (Unreachable, Overloaded):
            self._unanswered[key] = version, write
            raise  # it may have been written all the same; the next round asks the server
        except BaseException:
            self._settle(obj)
            raise
        self._unanswered.pop(key, None)
        self._settle(obj)

    async def _renew(self, obj: Object) -> bool:
        """Write once more what got no answer, if it can still come; say whether it could."""
        key, version = _at(obj)
        before, write = self._unanswered.get(key, (None, None))
        if write is None or before != version:
            self._unanswered.pop(key, None)
            return False
        await write()  # should it fail: who knows which of the two has come
        self._unanswered.pop(key, None)
        self._settle(obj)
        return True

    def _settle(self, obj: Object) -> None:
        self.settle(obj["metadata"]["uid"], self.writer.cache.get(key_of(obj)))


def _at(obj: Object) -> tuple[Key, Version]:
    metadata = obj["metadata"]
    return key_of(obj), (metadata["uid"], metadata["resourceVersion"])
