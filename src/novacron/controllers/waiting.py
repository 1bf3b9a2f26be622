"""How decisions wait: machines for room, and the ledger for the API server's answer."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta

from novacron.runtime.errors import Overloaded, Unreachable
from novacron.runtime.queue import Queue
from novacron.runtime.resource import Key, Object, key_of

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

    _unanswered: dict[Key, tuple[Version, Write]] = field(default_factory=dict)

    async def keep(self, obj: Object, write: Write, settle: Callable[[], None]) -> None:
        """Write what was assumed, and settle it once that is done or surely failed."""
        key, version = _at(obj)
        try:
            await write()
        except (Unreachable, Overloaded):
            self._unanswered[key] = version, write
            raise  # it may have been written all the same; the next round asks the server
        except BaseException:
            settle()
            raise
        self.forget(key)
        settle()

    async def renew(self, obj: Object, settle: Callable[[], None]) -> bool:
        """Write once more what got no answer, if it can still come; say whether it could."""
        key, version = _at(obj)
        before, write = self._unanswered.get(key, (None, None))
        if write is None or before != version:
            self.forget(key)
            return False
        await write()  # should it fail: who knows which of the two has come
        self.forget(key)
        settle()
        return True

    def forget(self, key: Key) -> None:
        """Forget what was promised to one that is no more, or of which all is known by now."""
        self._unanswered.pop(key, None)


def _at(obj: Object) -> tuple[Key, Version]:
    metadata = obj["metadata"]
    return key_of(obj), (metadata["uid"], metadata["resourceVersion"])
