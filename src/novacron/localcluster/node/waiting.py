"""Waiting for processes that need not be our children, without a thread and without polling."""

import asyncio
import os
import signal
from contextlib import suppress
from datetime import timedelta

from novacron.localcluster.identity import Identity
from novacron.localcluster.node.records import Start

__all__ = ["end", "ended", "readable"]


async def readable(handle: int) -> None:
    """Return when something can be read from a handle, or nothing ever will."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(handle, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(handle)


async def ended(identity: Identity) -> None:
    """Return when a process has ended."""
    try:
        handle = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return
    try:
        # The handle holds the process id: checked once, it cannot change hands.
        if identity.alive():
            await readable(handle)
    finally:
        os.close(handle)


async def end(start: Start, grace: timedelta) -> None:
    """Ask a container's process to end, force it after the grace, and wait for its keeper."""
    start.process.signal(signal.SIGTERM)
    with suppress(TimeoutError):
        async with asyncio.timeout(grace.total_seconds()):
            await ended(start.keeper)
            return
    start.process.signal(signal.SIGKILL)
    await ended(start.keeper)
