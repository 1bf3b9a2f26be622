"""The lines of an answer that has no end, such as a watch's, as they come.

Who reads too slowly makes the server wait; a server silent for too long is taken for dead.
"""

import asyncio
from collections import deque
from typing import Protocol, Self

__all__ = ["LARGEST_LINE", "Lines"]

# One line of a watch is one object; etcd takes at most 1.5 MiB of one.
LARGEST_LINE = 8 * 2**20
# How much may wait here to be read before the rest has to wait in the network.
MOST_WAITING, FEW_WAITING = 2**18, 2**16


class Source(Protocol):
    """What the lines come from."""

    def pause(self) -> None:
        """Send nothing more for a while."""

    def resume(self) -> None:
        """Go on."""

    def abort(self) -> None:
        """End it."""


class Lines:
    """An iterator over lines without their ends; used by one reader."""

    __slots__ = (
        "_ended",
        "_error",
        "_heard_at",
        "_loop",
        "_part",
        "_part_size",
        "_patience",
        "_paused",
        "_source",
        "_timer",
        "_waiter",
        "_waiting",
        "_whole",
    )

    def __init__(self, patience_seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._patience = patience_seconds
        self._whole: deque[bytes] = deque()
        self._waiting = 0
        self._part: list[bytes] = []
        self._part_size = 0
        self._source: Source | None = None
        self._paused = False
        self._ended = False
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._heard_at = 0.0

    def begin(self, source: Source) -> None:
        """Note where the lines come from; from now on there must be some."""
        self._source = source
        self._heard_at = self._loop.time()
        self._timer = self._loop.call_later(self._patience, self._listen)

    def feed(self, data: bytes) -> None:
        """Take in a part of the answer."""
        if self._ended:
            return
        self._heard_at = self._loop.time()
        first, *others = data.split(b"\n")
        self._part.append(first)
        self._part_size += len(first)
        for other in others:
            self._add(b"".join(self._part))
            self._part, self._part_size = [other], len(other)
        if self._part_size > LARGEST_LINE:
            self._fail(ConnectionError(f"a line of more than {LARGEST_LINE} bytes"))
        self._wake()

    def end(self, error: Exception | None) -> None:
        """Note the end, or what broke it; lines already here are still given."""
        if self._ended:
            return
        if error is None and self._part_size:
            self._add(b"".join(self._part))
        self._ended, self._error = True, error
        self._part.clear()
        if self._timer is not None:
            self._timer.cancel()
        self._go_on()
        self._source = None
        self._wake()

    def close(self) -> None:
        """Read no further; a connection that would bring more is ended."""
        source = self._source
        self.end(None)
        if source is not None:
            source.abort()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        while not self._whole:
            if self._error is not None:
                raise self._error
            if self._ended:
                raise StopAsyncIteration
            self._waiter = self._loop.create_future()
            await self._waiter
        line = self._whole.popleft()
        self._waiting -= len(line)
        if self._waiting <= FEW_WAITING:
            self._go_on()
        return line

    def _add(self, line: bytes) -> None:
        self._whole.append(line)
        self._waiting += len(line)
        if self._waiting > MOST_WAITING and not self._paused and self._source is not None:
            self._paused = True
            self._source.pause()

    def _go_on(self) -> None:
        if self._paused and self._source is not None:
            self._paused = False
            self._heard_at = self._loop.time()  # until now the silence was ours
            self._source.resume()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _listen(self) -> None:
        # One timer that looks again, not one for every line.
        quiet = 0.0 if self._paused else self._loop.time() - self._heard_at
        if quiet >= self._patience:
            self._fail(TimeoutError(f"nothing was heard for {self._patience:g} s"))
        else:
            self._timer = self._loop.call_later(self._patience - quiet, self._listen)

    def _fail(self, error: Exception) -> None:
        source = self._source
        self.end(error)
        if source is not None:
            source.abort()
