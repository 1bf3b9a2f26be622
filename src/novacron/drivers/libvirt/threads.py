"""Blocking calls in threads that never hold up the end of the process.

A pool's threads are waited for when the interpreter ends; one that hangs in a daemon which does
not answer would keep the operator from ever stopping.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import NamedTuple, TypeVar

__all__ = ["Ended", "Worker", "in_thread", "on_loop"]

T = TypeVar("T")

Order = Callable[[], None]


class Ended(NamedTuple):
    """What follows when blocking work has ended: on the loop, or in its thread if there is none."""

    on_loop: Callable[[], object]
    without_loop: Callable[[], object]


NOTHING_FOLLOWS = Ended(lambda: None, lambda: None)


class Worker:
    """A thread that does one thing after the other; a new one for each costs four times as much."""

    def __init__(self, name: str) -> None:
        self._orders: SimpleQueue[Order | None] = SimpleQueue()
        # The thread knows its orders and not the worker, who goes when nobody needs it any more.
        threading.Thread(target=_serve, args=(self._orders,), name=name, daemon=True).start()

    def __del__(self) -> None:
        self.dismiss()

    async def run(self, work: Callable[[], T], ended: Ended = NOTHING_FOLLOWS) -> T:
        """Run something that blocks and return what it returned.

        Whoever stops waiting does not stop it; its result is then nobody's.
        """
        order, result = _ordered(work, ended)
        self._orders.put(order)
        return await result

    def dismiss(self) -> None:
        """Have the thread end after what it was told to do."""
        self._orders.put(None)


def _serve(orders: "SimpleQueue[Order | None]") -> None:
    while (order := orders.get()) is not None:
        order()
        del order  # and with it all that it refers to, while there is nothing to do


async def in_thread(work: Callable[[], T], name: str) -> T:
    """Run something that blocks in a thread of its own and return what it returned."""
    order, result = _ordered(work)
    threading.Thread(target=order, name=name, daemon=True).start()
    return await result


def on_loop(loop: asyncio.AbstractEventLoop, what: Callable[[], object]) -> None:
    """Have something done on the loop, unless that has ended, and with it who wanted to know."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(what)


def _ordered(
    work: Callable[[], T], ended: Ended = NOTHING_FOLLOWS
) -> tuple[Order, "asyncio.Future[T]"]:
    """Return what a thread is to do, and what will then have come of it on this loop."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def deliver(set_outcome: Callable[[], None]) -> None:
        ended.on_loop()
        if not future.done():
            set_outcome()

    def order() -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - raised where it is awaited
            outcome, value = future.set_exception, error
        else:
            outcome, value = future.set_result, result  # type: ignore[assignment]
        try:
            loop.call_soon_threadsafe(deliver, lambda: outcome(value))
        except RuntimeError:  # the loop has ended, and with it whoever waited
            ended.without_loop()

    return order, future
