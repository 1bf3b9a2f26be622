"""How decisions wait: machines for room, and the ledger for the API server's answer."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from novacron.runtime.errors import Overloaded, Unreachable
from novacron.runtime.queue import Queue
from novacron.runtime.resource import Key

__all__ = ["WaitingRoom", "assumed"]

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


@contextmanager
def assumed(*, undo: Callable[[], None], written: Callable[[], None]) -> Iterator[None]:
    """Keep what the ledger assumed while it is written down, unless that surely failed."""
    try:
        yield
    except (Unreachable, Overloaded):
        raise  # it may have been written all the same; the next round asks the server
    except BaseException:
        undo()
        raise
    written()
