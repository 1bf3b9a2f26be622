"""Servers on loopback that stand before an API server, or in its place, and misbehave on demand."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from inspect import isawaitable

import aiohttp
from aiohttp import web

from novacron.runtime.connection import Connection
from novacron.runtime.credentials import Anonymous, Credentials

__all__ = ["Between", "answering", "connection_to", "until"]

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def until(claim: Callable[[], bool | Awaitable[bool]], seconds: float = 60) -> None:
    """Wait until something is so; the deadline only ends a test that has failed already."""
    async with asyncio.timeout(seconds):
        while True:
            claimed = claim()
            if await claimed if isawaitable(claimed) else claimed:
                return
            await asyncio.sleep(0.01)


def connection_to(url: str, credentials: Credentials | None = None) -> Connection:
    """Return a connection without TLS, for the servers of this module."""
    return Connection(url, None, credentials or Anonymous())


@asynccontextmanager
async def answering(answer: Answer) -> AsyncIterator[str]:
    """Serve whatever ``answer`` says on a free port; yields the URL."""

    async def handle(request: web.Request) -> web.StreamResponse:
        return await answer(request)

    application = web.Application(client_max_size=2**24)
    application.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


@dataclass
class Between:
    """A proxy before a real API server: counts requests, cuts connections, holds answers back."""

    target: Connection
    url: str = ""
    requests: list[tuple[str, str]] = field(default_factory=list)
    # Asked before a request is passed on; an answer of its own is given instead.
    instead: Callable[[web.Request], web.StreamResponse | None] = lambda _: None
    # Waited for before the answer to a write is passed back.
    before_answer: Callable[[web.Request], Awaitable[None]] | None = None
    # Waited for before a line of a watch is passed on.
    before_line: Callable[[bytes], Awaitable[None]] | None = None
    _open: set[asyncio.Transport] = field(default_factory=set)
    _session: aiohttp.ClientSession | None = None

    @property
    def connection(self) -> Connection:
        """The way through this proxy."""
        return connection_to(self.url)

    def lists(self) -> int:
        """Count the list requests so far."""
        return sum(method == "GET" and "limit=" in path for method, path in self.requests)

    def watches(self) -> int:
        """Count the watch requests so far."""
        return sum("watch=1" in path for _, path in self.requests)

    def cut(self) -> None:
        """Break every connection without a farewell, as a dying network does."""
        for transport in self._open:
            transport.abort()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["Between"]:
        """Serve until the block ends."""
        connector = aiohttp.TCPConnector(limit=0, ssl=self.target.tls or True)
        async with aiohttp.ClientSession(connector=connector, read_bufsize=2**23) as session:
            self._session = session
            async with answering(self._answer) as self.url:
                yield self
                self.cut()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((request.method, request.path_qs))
        if own := self.instead(request):
            return own
        assert self._session is not None
        assert request.transport is not None
        transport = request.transport
        self._open.add(transport)
        try:
            headers = {"Content-Type": request.content_type, "Accept": "application/json"}
            async with self._session.request(
                request.method,
                self.target.server + request.path_qs,
                data=await request.read(),
                headers=headers,
            ) as answer:
                if "watch=1" in request.path_qs:
                    return await self._stream(request, answer)
                body = await answer.read()
                if request.method != "GET" and self.before_answer:
                    await self.before_answer(request)
                return web.Response(
                    status=answer.status, body=body, content_type=answer.content_type
                )
        finally:
            self._open.discard(transport)

    async def _stream(
        self, request: web.Request, answer: aiohttp.ClientResponse
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status)
        response.content_type = "application/json"
        await response.prepare(request)
        async for line in answer.content:
            if self.before_line:
                await self.before_line(line)
            await response.write(line)
        await response.write_eof()
        return response
