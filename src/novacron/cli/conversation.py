"""A user and a guest on its serial console, until one of them ends it."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from novacron.cli.terminal import INPUT, Plain, keys, raw, show, signalled

if TYPE_CHECKING:
    from novacron.cli.wiring import Guest
    from novacron.core.driver import ConsoleStream

__all__ = ["End", "converse", "recent"]

ESCAPE = b"\x1d"  # Ctrl-]
WINDOW_BYTES = 16 * 1024
# How long what a guest says right now may take to come twice: kept, and by the console.
TWICE_SECONDS = 0.2
HANG_UP_SECONDS = 1.0


class End(Enum):
    """Why a conversation ended."""

    ESCAPED = "the user left"
    INPUT = "there was no more input"
    GUEST = "the console ended"
    SIGNAL = "we were told to end"


@dataclass(frozen=True, slots=True)
class Ended:
    """Why, and by which signal if it was one."""

    why: End
    signal: int = 0


async def converse(guest: "Guest", *, lines: int | None, linger: float) -> Ended:
    """Carry keys to the guest and its words to the user.

    With a number of lines the user is a person: they see so many of the last ones at once, and
    Ctrl-] ends it. Otherwise all input is for the guest, and its words are shown as plain text,
    also those that it says for ``linger`` seconds after the end of input.
    """
    stream = await guest.console()
    try:
        with raw(INPUT), signalled() as signal:
            hearing = asyncio.create_task(_hear(guest, stream, lines))
            typing = asyncio.create_task(_type(stream, escapable=lines is not None))
            try:
                return await _until_one_ends(hearing, typing, signal, linger)
            finally:
                hearing.cancel()
                typing.cancel()
    finally:
        with suppress(TimeoutError):  # a host that hangs holds nobody up
            await asyncio.wait_for(stream.close(), HANG_UP_SECONDS)


def recent(said: bytes, heard: bytes, lines: int) -> bytes:
    """Return the last lines of what was kept, and of what was heard since only what is new."""
    twice = next(
        size for size in range(min(len(said), len(heard)), -1, -1) if said.endswith(heard[:size])
    )
    return b"\r\n".join(Plain()(said).split(b"\n")[-lines:]) + heard[twice:]


async def _until_one_ends(
    hearing: "asyncio.Task[None]",
    typing: "asyncio.Task[bool]",
    signal: "asyncio.Future[int]",
    linger: float,
) -> Ended:
    others: set[asyncio.Future[Any]] = {hearing, signal}
    await asyncio.wait({typing, *others}, return_when=asyncio.FIRST_COMPLETED)
    if typing.done() and not hearing.done() and typing.result() is False:
        await asyncio.wait(others, timeout=linger, return_when=asyncio.FIRST_COMPLETED)
    if signal.done():
        return Ended(End.SIGNAL, signal.result())
    if hearing.done():
        hearing.result()
        return Ended(End.GUEST)
    return Ended(End.ESCAPED if typing.result() else End.INPUT)


async def _hear(guest: "Guest", stream: "ConsoleStream", lines: int | None) -> None:
    clean = Plain() if lines is None else bytes
    hearing = asyncio.create_task(stream.read())
    try:
        if lines is not None:
            said = await guest.said(-WINDOW_BYTES)
            await asyncio.wait({hearing}, timeout=TWICE_SECONDS)
            heard = hearing.result() if hearing.done() else b""
            show(recent(said.data, heard, lines))
            if heard:
                hearing = asyncio.create_task(stream.read())
        while heard := await hearing:
            show(clean(heard))
            hearing = asyncio.create_task(stream.read())
    finally:
        hearing.cancel()


async def _type(stream: "ConsoleStream", *, escapable: bool) -> bool:
    """Carry keys until there are no more; say whether it was left by Ctrl-]."""
    async for typed in keys(INPUT):
        before, escape, _ = typed.partition(ESCAPE) if escapable else (typed, b"", b"")
        if before:
            await stream.write(before)
        if escape:
            return True
    return False
