"""One HTTP/1.1 connection of a client: one request at a time, its answer whole or line by line.

Written by hand because requests are most of what an operator does, and this costs half of
the CPU of a general client (docs/decisions). Knows nothing of what is asked.
"""

import asyncio
import socket
from typing import NamedTuple, Protocol, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from novacron.runtime.http_lines import Lines

__all__ = ["Answer", "ConnectionLost", "HttpConnection"]

# A peer that vanished without a farewell is noticed after 15 + 3 * 10 seconds.
KEEPALIVE = {socket.TCP_KEEPIDLE: 15, socket.TCP_KEEPINTVL: 10, socket.TCP_KEEPCNT: 3}
FRAMED = (b"content-length", b"transfer-encoding")


class Answer(NamedTuple):
    """A whole answer, or the beginning of one whose lines are read elsewhere."""

    status: int
    retry_after: float | None
    body: bytes


class ConnectionLost(ConnectionError):
    """The connection ended, or made no sense, before the answer was complete."""


class Owner(Protocol):
    """Keeps connections for the next request."""

    def opened(self, connection: "HttpConnection") -> None:
        """Note that it stands."""

    def free(self, connection: "HttpConnection") -> None:
        """Note that it can take a request."""

    def closed(self, connection: "HttpConnection") -> None:
        """Note that it is no more."""


class HttpConnection(asyncio.Protocol):
    """A connection to one server. ``heard`` says whether anything came since the last request."""

    __slots__ = (
        "_body",
        "_headers",
        "_lines",
        "_loop",
        "_owner",
        "_parser",
        "_status",
        "_transport",
        "_waiter",
        "free_since",
        "heard",
    )

    def __init__(self, owner: Owner, loop: asyncio.AbstractEventLoop) -> None:
        self.heard = False
        self.free_since = 0.0
        self._owner = owner
        self._loop = loop
        self._parser: HttpResponseParser | None = None
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[Answer] | None = None
        self._lines: Lines | None = None
        self._status = 0
        self._headers: dict[bytes, bytes] = {}
        self._body: list[bytes] = []

    @property
    def usable(self) -> bool:
        """Say whether a request may be sent, as far as is known here."""
        return self._transport is not None and not self._transport.is_closing()

    async def ask(self, message: bytes, until: float, lines: Lines | None = None) -> Answer:
        """Send a request and return its answer; the body of a success goes into ``lines``.

        Whoever stops waiting ends the connection: what is left of the answer is nobody's.
        """
        assert self._transport is not None
        self.heard, self._status = False, 0
        self._lines = lines
        waiter: asyncio.Future[Answer] = self._loop.create_future()
        self._waiter = waiter
        timer = self._loop.call_at(until, self._too_late)
        self._transport.write(message)
        try:
            return await waiter
        finally:
            timer.cancel()
            if self._waiter is waiter:
                self.abort()

    def abort(self) -> None:
        """Hang up at once; TLS would wait for the other's farewell, and outlive the loop."""
        if self._transport is not None:
            self._transport.abort()

    def pause(self) -> None:
        """Let what comes wait in the network."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume(self) -> None:
        """Take in what comes."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note the transport; asyncio calls it."""
        made: socket.socket = transport.get_extra_info("socket")
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in KEEPALIVE.items():
            made.setsockopt(socket.IPPROTO_TCP, option, value)
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are of no such class
        self._parser = HttpResponseParser(self)
        self._owner.opened(self)

    def data_received(self, data: bytes) -> None:
        """Take in what came; asyncio calls it."""
        self.heard = True
        assert self._parser is not None
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self._fail(ConnectionLost(f"the answer is not HTTP: {error}"))

    def eof_received(self) -> None:
        """End what depends on more to come; asyncio calls it."""
        self._finish(None)
        self.abort()

    def connection_lost(self, error: Exception | None) -> None:
        """End what depends on more to come; asyncio calls it."""
        self._finish(error)
        self._transport = None
        self._parser = None  # which refers to this object
        self._owner.closed(self)

    def on_message_begin(self) -> None:
        """Prepare for an answer; the parser calls this and the following."""
        if self._waiter is None and self._lines is None:
            raise ConnectionLost("an answer without a question")
        self._status, self._headers, self._body = 0, {}, []

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note a header."""
        self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        """Let the reader of lines begin when there is something for it."""
        assert self._parser is not None
        self._status = self._parser.get_status_code()
        if self._lines is None or self._status < 200:
            return
        if self._status == 200:
            self._lines.begin(self)
            self._give(b"")
        else:
            self._lines = None  # an error is short and read as a whole

    def on_body(self, data: bytes) -> None:
        """Note a part of the body."""
        if self._lines is None:
            self._body.append(data)
        else:
            self._lines.feed(data)

    def on_message_complete(self) -> None:
        """Give the answer to whoever waits, and the connection to the next."""
        assert self._parser is not None
        if self._status < 200:  # an interim answer, such as 100 Continue; the real one follows
            return
        keep = self._parser.should_keep_alive()
        self._complete()
        if keep and self.usable:
            self._owner.free(self)
        else:
            self.abort()

    def _complete(self) -> None:
        if self._lines is not None:
            self._lines.end(None)
            self._lines = None
        else:
            self._give(b"".join(self._body))
            self._body = []

    def _give(self, body: bytes) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            after = self._headers.get(b"retry-after", b"")
            seconds = float(after) if after.isdigit() else None
            waiter.set_result(Answer(self._status, seconds, body))

    def _finish(self, error: Exception | None) -> None:
        """End with the connection, which is how an answer without a length is complete."""
        whole = self._status >= 200 and not any(name in self._headers for name in FRAMED)
        if self.heard and whole and error is None:
            self._complete()
        else:
            why = str(error) if error else "the server closed the connection"
            self._fail(ConnectionLost(why))

    def _too_late(self) -> None:
        self._fail(TimeoutError("it took too long"))

    def _fail(self, error: Exception) -> None:
        waiter, self._waiter = self._waiter, None
        lines, self._lines = self._lines, None
        if waiter is not None and not waiter.done():
            waiter.set_exception(error)
        elif lines is not None:
            lines.end(error)
        self.abort()
