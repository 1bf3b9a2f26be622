"""Guests that were asked to shut down: one that is still booting hears it only when asked again."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from novacron.core.errors import DriverError

__all__ = ["Stopping"]

log = logging.getLogger(__name__)

AGAIN_SECONDS = 3.0
# After this a guest counts as running again, and whoever wants it off has to ask, or to force it.
PATIENCE_SECONDS = 600.0


@dataclass(slots=True)
class Stopping:
    """Asks guests to stop until they have."""

    ask: Callable[[str], Awaitable[bool]]
    done: Callable[[str], None]
    _tasks: dict[str, "asyncio.Task[None]"] = field(default_factory=dict)
    _news: dict[str, asyncio.Event] = field(default_factory=dict)

    @property
    def uids(self) -> frozenset[str]:
        """The machines that were asked."""
        return frozenset(self._tasks)

    def begin(self, uid: str) -> None:
        """Begin to ask a guest."""
        if uid not in self._tasks:
            self._news[uid] = asyncio.Event()
            self._tasks[uid] = asyncio.create_task(self._insist(uid))

    def look(self, uid: str) -> None:
        """Look now: something about the machine changed."""
        if (event := self._news.get(uid)) is not None:
            event.set()

    def forget(self, uid: str) -> None:
        """Stop asking."""
        if (task := self._tasks.pop(uid, None)) is not None:
            task.cancel()
        self._news.pop(uid, None)

    def close(self) -> None:
        """Stop asking all of them."""
        for uid in list(self._tasks):
            self.forget(uid)

    async def _insist(self, uid: str) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + PATIENCE_SECONDS
        event = self._news[uid]
        try:
            while loop.time() < end:
                event.clear()
                try:
                    if await self.ask(uid):
                        break
                except DriverError as error:
                    log.info("asking a guest to stop: %s", error)
                try:
                    await asyncio.wait_for(event.wait(), AGAIN_SECONDS)
                except TimeoutError:
                    continue
        finally:
            if self._tasks.get(uid) is asyncio.current_task():
                del self._tasks[uid], self._news[uid]
        self.done(uid)
