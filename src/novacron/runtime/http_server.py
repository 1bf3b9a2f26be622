"""A small HTTP/1.1 server for short answers that need no waiting: probes, metrics, reviews.

No compression, no uploads without end, no ``Expect``: nobody who asks here needs them.
"""

import asyncio
import contextlib
import ssl

from novacron.runtime.http_caller import PLAIN, Ask, Caller, Handler, Reply

__all__ = ["PLAIN", "Ask", "Handler", "HttpServer", "Reply"]


class HttpServer:
    """Listens, and keeps count of who is connected."""

    def __init__(self, handler: Handler, *, largest_body: int, keep_alive_seconds: float) -> None:
        self.handler = handler
        self.largest_body = largest_body
        self.keep_alive_seconds = keep_alive_seconds
        self.stopping = False
        self.connections: set[Caller] = set()
        self._server: asyncio.Server | None = None
        self._all_gone: asyncio.Future[None] | None = None

    async def listen(self, host: str | None, port: int, tls: ssl.SSLContext | None) -> int:
        """Listen on an address and return the port; OSError when that cannot be."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Caller(self, loop), host, port, ssl=tls, reuse_address=True
        )
        chosen: int = self._server.sockets[0].getsockname()[1]
        return chosen

    async def stop(self, within_seconds: float) -> None:
        """Accept nobody, let requests that have begun be answered, then hang up."""
        if self._server is None:
            return
        self.stopping = True
        self._server.close()
        for connection in tuple(self.connections):
            connection.leave()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_seconds):
                await self._emptied()
        for connection in tuple(self.connections):
            connection.abort()
        await self._emptied()
        self._server = None

    def gone(self, connection: Caller) -> None:
        """Forget a connection."""
        self.connections.discard(connection)
        if self._all_gone is not None and not self.connections and not self._all_gone.done():
            self._all_gone.set_result(None)

    async def _emptied(self) -> None:
        if self.connections:
            self._all_gone = asyncio.get_running_loop().create_future()
            await self._all_gone
