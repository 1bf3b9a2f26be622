"""One connection of somebody who asks our HTTP server; its requests are answered in their order.

A handler is a plain function: whatever needs waiting has no place here.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import cache
from http import HTTPStatus
from typing import NamedTuple, Protocol, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

__all__ = ["PLAIN", "Ask", "Caller", "Handler", "Reply"]

log = logging.getLogger(__name__)

LARGEST_HEAD = 2**16
# Who is refused amid sending would not read the answer if the connection broke at once.
LINGER_SECONDS = 2.0
PLAIN = "text/plain; charset=utf-8"


class Ask(NamedTuple):
    """A request."""

    method: str
    path: str
    query: str
    body: bytes


class Reply(NamedTuple):
    """An answer."""

    status: int
    body: bytes
    content_type: str = PLAIN


Handler = Callable[[Ask], Reply]


class Server(Protocol):
    """What a connection asks of its server."""

    handler: Handler
    largest_body: int
    keep_alive_seconds: float
    stopping: bool
    connections: set["Caller"]

    def gone(self, connection: "Caller") -> None:
        """Forget a connection."""


class Caller(asyncio.Protocol):
    """One connection; asyncio and the parser call its methods."""

    __slots__ = (
        "_answered_at",
        "_body",
        "_choked",
        "_head_done",
        "_loop",
        "_parser",
        "_received",
        "_server",
        "_timer",
        "_transport",
        "_url",
    )

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._loop = loop
        self._parser: HttpRequestParser | None = None
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._answered_at = loop.time()
        self._choked = False
        self._forget()

    def _forget(self) -> None:
        self._url = b""
        self._body: list[bytes] = []
        self._received = 0
        self._head_done = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to listen."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are of no such class
        self._parser = HttpRequestParser(self)
        self._server.connections.add(self)
        if self._server.stopping:
            self.abort()
        else:
            self._timer = self._loop.call_later(self._server.keep_alive_seconds, self._too_quiet)

    def connection_lost(self, _: Exception | None) -> None:
        """Forget everything."""
        if self._timer is not None:
            self._timer.cancel()
        self._transport = None
        self._parser = None  # which refers to this object
        self._server.gone(self)

    def pause_writing(self) -> None:
        """Read no more requests while the answer to the last one is not taken."""
        self._choked = True
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Read on."""
        self._choked = False
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        """Take in a part of a request."""
        if self._parser is None:  # refused
            return
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            self._close()  # it was answered as an ordinary request
        except HttpParserError as error:
            self._refuse(Reply(400, f"this is not HTTP: {error}".encode()))
            return
        if not self._head_done and self._received > LARGEST_HEAD:
            self._refuse(Reply(431, b"the headers are too long"))

    def on_url(self, url: bytes) -> None:
        """Note a part of the target."""
        self._url += url

    def on_headers_complete(self) -> None:
        """Let the body have a limit of its own."""
        self._head_done = True

    def on_body(self, data: bytes) -> None:
        """Note a part of the body."""
        self._body.append(data)
        if self._received > self._server.largest_body + LARGEST_HEAD:
            self._refuse(Reply(413, b"the body is too long"))

    def on_message_complete(self) -> None:
        """Answer."""
        parser = self._parser
        if parser is None or self._transport is None or self._transport.is_closing():
            return
        if self._choked:  # asks on and on and reads nothing: the answers would pile up here
            self.abort()
            return
        method = parser.get_method().decode()
        path, _, query = self._url.decode("latin-1").partition("?")
        body = b"".join(self._body)
        self._forget()
        if len(body) > self._server.largest_body:
            self._refuse(Reply(413, b"the body is too long"))
            return
        reply = self._reply(Ask(method, path, query, body))
        keep = parser.should_keep_alive() and not parser.should_upgrade()
        keep = keep and not self._server.stopping
        self._write(reply, keep=keep, with_body=method != "HEAD")
        self._answered_at = self._loop.time()
        if not keep:
            self._close()

    def _reply(self, ask: Ask) -> Reply:
        try:
            return self._server.handler(ask)
        except Exception:
            log.exception("cannot answer %s %s", ask.method, ask.path)
            return Reply(500, b"this could not be answered; the log says why")

    def _write(self, reply: Reply, *, keep: bool, with_body: bool = True) -> None:
        assert self._transport is not None
        begin = _head(reply.status, reply.content_type, "keep-alive" if keep else "close")
        head = b"%sContent-Length: %d\r\n\r\n" % (begin, len(reply.body))
        self._transport.write(head + reply.body if with_body else head)

    def _refuse(self, reply: Reply) -> None:
        """Answer amid a request; what is left of it is read and thrown away for a while."""
        if self._parser is None or self._transport is None:
            return
        self._parser = None
        self._body = []
        self._write(reply, keep=False)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(LINGER_SECONDS, self.abort)

    def leave(self) -> None:
        """Hang up when everything is written, unless a request has begun."""
        if not self._received:
            self._close()

    def abort(self) -> None:
        """Hang up at once."""
        if self._transport is not None:
            self._transport.abort()

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _too_quiet(self) -> None:
        # One timer that looks again, not one for every request.
        left = self._answered_at + self._server.keep_alive_seconds - self._loop.time()
        if left <= 0:
            self.abort()
        else:
            self._timer = self._loop.call_later(left, self._too_quiet)


@cache  # of few: statuses and types are those of our own handlers
def _head(status: int, content_type: str, connection: str) -> bytes:
    return (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
        f"Connection: {connection}\r\nContent-Type: {content_type}\r\n"
    ).encode()
