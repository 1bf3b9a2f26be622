"""A queue of keys: no key twice, no key in two hands, failures come back later and later."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random

from novacron.runtime.resource import Key

__all__ = ["Queue"]


@dataclass(slots=True)
class Queue:
    """Keys to look at, in the order they were added.

    A key added while it is worked on is handed out once more afterwards, never at the same time.
    """

    shortest: timedelta = timedelta(milliseconds=200)
    longest: timedelta = timedelta(minutes=5)
    random: Random = field(default_factory=Random)
    on_wait: Callable[[float], None] | None = None
    _order: deque[Key] = field(default_factory=deque)
    _added: dict[Key, float] = field(default_factory=dict)
    _working: set[Key] = field(default_factory=set)
    _timers: dict[Key, asyncio.TimerHandle] = field(default_factory=dict)
    _failures: dict[Key, int] = field(default_factory=dict)
    _waiting: deque[asyncio.Future[None]] = field(default_factory=deque)

    def __len__(self) -> int:
        return len(self._added)

    @property
    def working(self) -> frozenset[Key]:
        """The keys in somebody's hands now."""
        return frozenset(self._working)

    def add(self, key: Key) -> None:
        """Have a key looked at soon."""
        if key in self._added:
            return
        self._added[key] = asyncio.get_running_loop().time()
        if key not in self._working:
            self._order.append(key)
            self._wake()

    def add_after(self, key: Key, delay: timedelta) -> None:
        """Have a key looked at after a while, or earlier if somebody asked for that before."""
        loop = asyncio.get_running_loop()
        due = loop.time() + delay.total_seconds()
        timer = self._timers.get(key)
        if timer is not None:
            if timer.when() <= due:
                return
            timer.cancel()
        self._timers[key] = loop.call_at(due, self._due, key)

    def add_failed(self, key: Key, shortest: timedelta | None = None) -> timedelta:
        """Have a key looked at again after it failed; each failure doubles the pause."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        pause = min((shortest or self.shortest) * 2.0 ** min(failures, 32), self.longest)
        pause *= self.random.uniform(0.75, 1.25)
        self.add_after(key, pause)
        return pause

    def forget(self, key: Key) -> None:
        """Forget past failures of a key."""
        self._failures.pop(key, None)

    async def take(self) -> Key:
        """Wait for a key and take it in hand; ``done`` gives it back."""
        while not self._order:
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                self._pass_on(waiter)
                raise
        key = self._order.popleft()
        waited = asyncio.get_running_loop().time() - self._added.pop(key)
        self._working.add(key)
        if self.on_wait:
            self.on_wait(waited)
        return key

    def done(self, key: Key) -> None:
        """Give a key back; if it was added meanwhile, it is next in line."""
        self._working.discard(key)
        if key in self._added:
            self._order.append(key)
            self._wake()

    def close(self) -> None:
        """Cancel all timers."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _due(self, key: Key) -> None:
        self._timers.pop(key, None)
        self.add(key)

    def _wake(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _pass_on(self, waiter: "asyncio.Future[None]") -> None:
        # A wake-up that met a cancelled worker belongs to the next one.
        if waiter.done() and not waiter.cancelled() and self._order:
            self._wake()
