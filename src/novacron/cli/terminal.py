"""The user's side of a console: keys as they are typed, and a terminal as before in the end.

It knows neither machines nor clusters.
"""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress

__all__ = ["INPUT", "Plain", "keys", "raw", "show", "signalled"]

INPUT, OUTPUT = 0, 1
CHUNK = 4096
# What ends us from outside; in raw mode no key does.
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Orders to a terminal, among them questions, which it would answer as if the user typed.
ORDERS = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|[PX^_\]].{0,256}?(?:\x1b\\|\x07)|[ -/]*[0-OQ-WYZ\\`-~])",
    re.DOTALL,
)
LONGEST_ORDER = 300
RETURNS = re.compile(rb"\r+\n")


@contextmanager
def raw(descriptor: int = INPUT) -> Iterator[None]:
    """Have every key as it is typed, without echo, for a while; no terminal stays as it is."""
    if not os.isatty(descriptor):
        yield
        return
    import termios  # noqa: PLC0415 - not on every system
    import tty  # noqa: PLC0415

    before = termios.tcgetattr(descriptor)
    try:
        tty.setraw(descriptor)
        yield
    finally:
        # What was typed for a guest and not read must not reach the user's shell.
        with suppress(termios.error):  # the terminal itself may be gone
            termios.tcsetattr(descriptor, termios.TCSAFLUSH, before)


async def keys(descriptor: int = INPUT) -> AsyncIterator[bytes]:
    """Give what is typed, or what a pipe or file brings, until that ends."""
    while True:
        await _readable(descriptor)
        try:
            typed = os.read(descriptor, CHUNK)
        except BlockingIOError:
            continue
        except OSError:
            return  # it was closed, or the terminal is gone
        if not typed:
            return
        yield typed


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    try:
        loop.add_reader(descriptor, ready.set)
    except OSError:
        return  # a file, or nothing at all: neither makes anybody wait
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)


def show(data: bytes) -> None:
    """Write bytes as they are."""
    while data:
        data = data[os.write(OUTPUT, data) :]


class Plain:
    """Takes out of what comes in pieces all that is meant for a terminal and not for a reader."""

    def __init__(self) -> None:
        self._rest = b""

    def __call__(self, data: bytes) -> bytes:
        """Return the text of one more piece; an order that has only begun waits for the next."""
        text = RETURNS.sub(b"\n", ORDERS.sub(b"", self._rest + data))
        begun = text.find(b"\x1b", max(len(text) - LONGEST_ORDER, 0))
        if begun < 0:
            begun = len(text.rstrip(b"\r"))
        self._rest = text[begun:]
        return text[:begun]


@contextmanager
def signalled() -> "Iterator[asyncio.Future[int]]":
    """Give a future of the signal that ends us; nothing else happens at one meanwhile."""
    loop = asyncio.get_running_loop()
    heard: asyncio.Future[int] = loop.create_future()

    def hear(number: int) -> None:
        if not heard.done():
            heard.set_result(number)

    for number in ENDINGS:
        loop.add_signal_handler(number, hear, number)
    try:
        yield heard
    finally:
        for number in ENDINGS:
            loop.remove_signal_handler(number)
