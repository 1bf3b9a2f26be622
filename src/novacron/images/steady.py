"""Reads on after a broken connection, from where it broke off.

Only the same bytes are gone on with: those that the source recognises by its own mark, or, where
it has none, those that a checksum proves in the end.
"""

import http.client
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta

from novacron.core.errors import Busy, DriverError
from novacron.images.bytes import Bytes, Opened

__all__ = ["INCOMPLETE", "Clock", "Steady"]

INCOMPLETE = "ImageIncomplete"

LATER = timedelta(seconds=5)
# A source that gives nothing for so long is given up for now; whoever stored what was read goes on
# after that later.
PATIENCE_SECONDS = 30.0
PAUSE_SECONDS = 1.0
SKIP_BYTES = 1024 * 1024
# Less than that while we waited for so long is nobody's network, but somebody who keeps us busy.
WINDOW_SECONDS = 60.0
WINDOW_BYTES = 2 * 1024 * 1024


class Clock:
    """Tells the time and lets it pass."""

    now: Callable[[], float] = staticmethod(time.monotonic)
    sleep: Callable[[float], None] = staticmethod(time.sleep)


class Steady:
    """One image's bytes as a stream that outlives connections.

    ``beat`` is called at least every ten seconds or so while it reads or waits.
    """

    def __init__(
        self,
        source: Bytes,
        beat: Callable[[], None],
        *,
        proven: bool,
        clock: Clock | None = None,
    ) -> None:
        self._source = source
        self._beat = beat
        self._proven = proven
        self._clock = clock or Clock()
        self._stack = ExitStack()
        self.first: Opened = self._stack.enter_context(source.open())
        self._current = self.first
        self.position = 0
        self._waited = 0.0
        self._came = 0

    def close(self) -> None:
        """Let go of the connection."""
        self._stack.close()

    def read(self, size: int) -> bytes:
        """Return so many bytes; fewer at the very end only."""
        pieces = bytearray()
        while len(pieces) < size and (piece := self._next(size - len(pieces))):
            pieces += piece
        return bytes(pieces)

    def _next(self, size: int) -> bytes:
        """Return what comes next, from this connection or another; nothing at the very end."""
        deadline = self._clock.now() + PATIENCE_SECONDS
        while True:
            why = "the connection broke off"
            try:
                data = self._received(self._current, size)
            except (OSError, http.client.HTTPException) as error:
                data, why = b"", str(error) or type(error).__name__
            else:
                if data or self._at_end():
                    self.position += len(data)
                    return data
            self._again(deadline, why)

    def _received(self, opened: Opened, size: int) -> bytes:
        """Return what comes next from a connection, however little; give up where that is long."""
        with self._waiting():
            data = opened.stream.read(size)
        self._beat()
        self._came += len(data)
        if data and self._waited > WINDOW_SECONDS:
            if self._came < WINDOW_BYTES:
                raise self._trouble("comes too slowly")
            self._waited, self._came = 0.0, 0
        return data

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """Count the time that the source takes; where its bytes go to may be slower than it is."""
        since = self._clock.now()
        try:
            yield
        finally:
            self._waited += self._clock.now() - since

    def go_to(self, position: int) -> None:
        """Go on from somewhere, which what was read before by somebody else ends with."""
        self.position = position
        self._again(self._clock.now() + PATIENCE_SECONDS, "it was never there")

    def _at_end(self) -> bool:
        return self.first.length is None or self.position >= self.first.length

    def _again(self, deadline: float, why: str) -> None:
        """Connect once more and go to where it broke off."""
        while True:
            self._stack.close()
            self._beat()
            with self._waiting():
                self._clock.sleep(PAUSE_SECONDS)
            if self._clock.now() > deadline:
                told = "" if self.first.length is None else f" of {self.first.length}"
                raise self._trouble(f"stopped after {self.position}{told} bytes: {why}")
            try:
                with self._waiting():
                    opened = self._stack.enter_context(
                        self._source.open(self.position, self.first.validator)
                    )
                self._beat()
                self._adopt(opened)
            except (OSError, http.client.HTTPException) as error:
                why = str(error) or type(error).__name__
            except Busy as error:
                if error.reason != "ImageUnreachable":
                    raise
                why = str(error)
            else:
                return

    def _adopt(self, opened: Opened) -> None:
        same = opened.version == self.first.version and opened.length == self.first.length
        resumes = opened.start == self.position
        if not (self._proven or (same and self.first.validator)):
            raise self._trouble(
                "stopped half-way, and its server cannot tell if it is still the same"
            )
        if not (resumes or same):
            raise self._trouble("changed while it was read")
        self._current = opened
        left = self.position - opened.start
        while left and (skipped := self._received(opened, min(left, SKIP_BYTES))):
            left -= len(skipped)
        if left:
            raise OSError("the connection broke off")

    def _trouble(self, what: str) -> DriverError:
        return Busy(f"image {self._source.shown} {what}", LATER, reason=INCOMPLETE)
