"""The way to one API server: connections that stand, and requests that travel on them.

Connections are kept while they are warm and taken again last in, first out. There is no limit
on them because the queue's workers are one.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import Callable
from urllib.parse import urlsplit

from novacron.runtime.connection import Connection, NoCluster
from novacron.runtime.http_connection import Answer, ConnectionLost, HttpConnection
from novacron.runtime.http_lines import Lines
from novacron.runtime.request import Request

__all__ = ["Transport"]

CONNECT_SECONDS = 10.0
# Shorter than servers and balancers keep idle connections: a write into one that is being closed
# has no answer, and may not be sent again.
WARM_SECONDS = 15.0
# A quiet watch hears a bookmark about once a minute, but the first only when something, however
# far away, was written (seen: after two minutes). Far longer silence is a server that hangs.
WATCH_PATIENCE_SECONDS = 300.0


class Transport:
    """Sends requests to one API server and keeps its connections."""

    def __init__(self, connection: Connection) -> None:
        self._host, self._port, self._tls, host_header, self._prefix = _address(connection)
        self._server_name = (connection.server_name or self._host) if self._tls else None
        # Not compressed: within a cluster, bytes are cheaper than the CPU of both ends.
        self._headers = (
            f"Host: {host_header}\r\nAccept: application/json, */*\r\n"
            "Accept-Encoding: identity\r\nUser-Agent: novacron\r\n"
        )
        self._free: deque[HttpConnection] = deque()
        self._open: set[HttpConnection] = set()
        self._all_closed: asyncio.Future[None] | None = None

    async def ask(
        self,
        request: Request,
        authorization: str | None,
        until: float,
        permit: Callable[[], float] | None = None,
    ) -> Answer:
        """Return the answer that comes until a moment of the loop's clock, or raise OSError.

        ``permit`` is called when a connection had to be made first: it raises when the request
        may not be sent any more, or returns for how many seconds it still may.
        """
        message = request.encode(self._prefix, self._headers, authorization)
        if (warm := self._take()) is not None:
            try:
                return await warm.ask(message, until)
            except ConnectionLost:
                if request.writes or warm.heard:
                    raise  # otherwise it was closed before the request was seen
        connection = await self._connect(until)
        if permit is not None:
            until = min(until, self._permitted(permit, connection))
        return await connection.ask(message, until)

    async def follow(self, request: Request, authorization: str | None) -> tuple[Answer, Lines]:
        """Begin to read an answer line by line; one that is no success is read whole."""
        message = request.encode(self._prefix, self._headers, authorization)
        until = asyncio.get_running_loop().time() + WATCH_PATIENCE_SECONDS
        lines = Lines(WATCH_PATIENCE_SECONDS)
        if (warm := self._take()) is not None:
            try:
                return await warm.ask(message, until, lines), lines
            except ConnectionLost:
                if warm.heard:
                    raise
        connection = await self._connect(until)
        return await connection.ask(message, until, lines), lines

    async def close(self) -> None:
        """End all connections, whatever is under way on them."""
        self._all_closed = asyncio.get_running_loop().create_future()
        for connection in tuple(self._open):
            connection.abort()
        if self._open:
            await self._all_closed

    def opened(self, connection: HttpConnection) -> None:
        """Note that a connection stands."""
        self._open.add(connection)
        if self._all_closed is not None:
            connection.abort()

    def free(self, connection: HttpConnection) -> None:
        """Keep a connection for the next request; those nobody needed for long are ended."""
        connection.free_since = now = asyncio.get_running_loop().time()
        self._free.append(connection)
        while self._free[0].free_since < now - WARM_SECONDS:
            self._free.popleft().abort()

    def closed(self, connection: HttpConnection) -> None:
        """Forget a connection."""
        self._open.discard(connection)
        if connection in self._free:
            self._free.remove(connection)
        if self._all_closed is not None and not self._open and not self._all_closed.done():
            self._all_closed.set_result(None)

    def _take(self) -> HttpConnection | None:
        coldest = asyncio.get_running_loop().time() - WARM_SECONDS
        while self._free:
            connection = self._free.pop()
            if connection.usable and connection.free_since >= coldest:
                return connection
            connection.abort()
        return None

    async def _connect(self, until: float) -> HttpConnection:
        if self._all_closed is not None:
            raise RuntimeError("the client is used after it was left")
        loop = asyncio.get_running_loop()
        connection = HttpConnection(self, loop)
        try:
            async with asyncio.timeout_at(min(until, loop.time() + CONNECT_SECONDS)):
                await loop.create_connection(
                    lambda: connection,
                    self._host,
                    self._port,
                    ssl=self._tls,
                    server_hostname=self._server_name,
                )
        except BaseException as error:
            connection.abort()
            if isinstance(error, TimeoutError) and not error.args:
                raise TimeoutError("no connection in time") from error
            raise
        return connection

    def _permitted(self, permit: Callable[[], float], connection: HttpConnection) -> float:
        try:
            return asyncio.get_running_loop().time() + permit()
        except BaseException:
            self.free(connection)
            raise


def _address(connection: Connection) -> tuple[str, int, ssl.SSLContext | None, str, str]:
    """Return host, port, TLS, the Host header and the path below which everything is."""
    try:
        parts = urlsplit(connection.server)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise NoCluster(f"{connection.server} is not an address: {error}") from error
    if not host or parts.scheme not in ("http", "https"):
        raise NoCluster(f"{connection.server} begins with neither https:// nor http://")
    named = parts.netloc.rpartition("@")[2]
    prefix = parts.path.rstrip("/")
    if parts.scheme == "http":
        return host, port or 80, None, named, prefix
    return host, port or 443, connection.tls or ssl.create_default_context(), named, prefix
