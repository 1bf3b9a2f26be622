"""Runs a reconcile function over a queue with a number of workers."""

import asyncio
import contextvars
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import Protocol

from novacron.runtime.cache import Cache, Change
from novacron.runtime.errors import ApiError, Conflict, LeaseLost
from novacron.runtime.queue import Queue
from novacron.runtime.resource import Key, Object

__all__ = ["RECONCILE", "Controller", "ReconcileObserver", "Reconciling"]

log = logging.getLogger(__name__)

About = Callable[[Key], Mapping[str, object]]

CONFLICT_PAUSE = timedelta(milliseconds=20)


def anything(_: Object) -> bool:
    """Find every object worth a look."""
    return True


class Reconciling:
    """What is being reconciled in the current task; log lines carry it.

    ``about`` says more, when a line is written.
    """

    __slots__ = ("about", "controller", "key", "number")

    def __init__(
        self, controller: str, key: Key, number: int, about: "About | None" = None
    ) -> None:
        self.controller = controller
        self.key = key
        self.number = number
        self.about = about


RECONCILE: contextvars.ContextVar[Reconciling | None] = contextvars.ContextVar(
    "reconcile", default=None
)


class ReconcileObserver(Protocol):
    """Is told how every reconcile ended."""

    def reconciled(self, controller: str, result: str, seconds: float) -> None:
        """Count one reconcile; results are success, requeue, conflict and error."""


@dataclass(slots=True)
class Controller:
    """One reconcile function, one queue, a number of workers.

    ``reconcile`` returns when to look again, or None. It may be called at any time and any number
    of times for a key, but never twice at once. ``owns`` says which keys are this process's.
    """

    name: str
    reconcile: Callable[[Key], Awaitable[timedelta | None]]
    owns: Callable[[Key], bool]
    workers: int = 16
    observer: ReconcileObserver | None = None
    queue: Queue = field(default_factory=Queue)
    about: About | None = None
    _numbers: "count[int]" = field(default_factory=lambda: count(1))
    _attempts: dict[Key, "asyncio.Task[None]"] = field(default_factory=dict)

    def follow(self, cache: Cache, concerns: Callable[[Object], bool] = anything) -> None:
        """Have changes of a cache looked at, except this controller's own writes.

        ``concerns`` tells from the object alone, and cheaply, whether a look would be in vain.
        """

        def changed(change: Change) -> None:
            ours = change.writer != self.name and self.owns(change.key)
            if ours and (change.object is None or concerns(change.object)):
                self.queue.add(change.key)

        cache.subscribe(changed)

    def add_all(self, keys: Iterable[Key]) -> None:
        """Have all keys looked at that are this process's."""
        for key in keys:
            if self.owns(key):
                self.queue.add(key)

    async def run(self) -> None:
        """Work until cancelled; what is in hand then is finished first."""
        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(self.workers):
                    workers.create_task(self._work())
        finally:
            self.queue.close()

    async def idle(self, select: Callable[[Key], bool]) -> None:
        """Wait until no key of this selection is in anybody's hands."""
        if attempts := [task for key, task in self._attempts.items() if select(key)]:
            await asyncio.wait(attempts)

    async def _work(self) -> None:
        while True:
            key = await self.queue.take()
            try:
                if self.owns(key):
                    await self._finish(key)
            finally:
                self.queue.done(key)

    async def _finish(self, key: Key) -> None:
        # A worker told to stop finishes what it has in hand; whoever stops it sets the deadline.
        attempt = self._attempts[key] = asyncio.create_task(self._attempt(key))
        try:
            await asyncio.shield(attempt)
        except asyncio.CancelledError:
            await attempt
            raise
        finally:
            del self._attempts[key]

    async def _attempt(self, key: Key) -> None:
        RECONCILE.set(Reconciling(self.name, key, next(self._numbers), self.about))
        loop = asyncio.get_running_loop()
        started = loop.time()
        result = "success"
        try:
            after = await self.reconcile(key)
            self.queue.forget(key)
            if after is not None:
                result = "requeue"
                self.queue.add_after(key, after)
        except Conflict:
            # Somebody else wrote first; what they wrote is on its way through the watch, or
            # takes longer when that one is down: hence the growing pause.
            result = "conflict"
            self.queue.add_failed(key, CONFLICT_PAUSE)
        except LeaseLost:
            result = "error"
        except ApiError as error:
            result = "error"
            pause = self.queue.add_failed(key)
            log.warning("%s; again in %.1f s", error.message, pause.total_seconds())
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and _told_to_stop():
                raise
            result = "error"
            pause = self.queue.add_failed(key)
            log.exception("reconcile failed; again in %.1f s", pause.total_seconds())
        if self.observer is not None:
            self.observer.reconciled(self.name, result, loop.time() - started)


def _told_to_stop() -> bool:
    # Something the reconcile waited for may be cancelled without anybody stopping the reconcile;
    # that is a failure like any other, and must not end the worker.
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
