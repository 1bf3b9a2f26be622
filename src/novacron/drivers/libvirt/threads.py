"""Blocking calls in threads that never hold up the end of the process.

A pool's threads are waited for when the interpreter ends; one that hangs in a daemon which does
not answer would keep the operator from ever stopping.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

__all__ = ["in_thread"]

T = TypeVar("T")


async def in_thread(work: Callable[[], T], name: str) -> T:
    """Run something that blocks and return what it returned.

    Whoever stops waiting does not stop it; its result is then nobody's.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def deliver(set_outcome: Callable[[], None]) -> None:
        if not future.done():
            set_outcome()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - raised where it is awaited
            outcome, value = future.set_exception, error
        else:
            outcome, value = future.set_result, result  # type: ignore[assignment]
        with suppress(RuntimeError):  # the loop has ended, and with it whoever waited
            loop.call_soon_threadsafe(deliver, lambda: outcome(value))

    threading.Thread(target=run, name=name, daemon=True).start()
    return await future
