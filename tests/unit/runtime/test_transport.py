"""Connections of the client against a server that speaks raw bytes, and misbehaves."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
import uvloop

from loopback import connection_to, until
from novacron.runtime.certificate_pair import Lifetimes
from novacron.runtime.client import Client
from novacron.runtime.connection import Connection, NoCluster
from novacron.runtime.credentials import StaticToken
from novacron.runtime.errors import LeaseLost, Overloaded, Unreachable
from novacron.runtime.issuing import fresh
from novacron.runtime.resource import Resource

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
BOOKMARK = b'{"type":"BOOKMARK","object":{}}\n'


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


class Wire:
    """A server; ``talk`` gets each connection's number, its requests one by one, and a writer."""

    def __init__(self, talk: "Talk") -> None:
        self.talk = talk
        self.connections = 0
        self.open = 0
        self.requests: list[bytes] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        number = self.connections
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
                self.requests.append(head + await reader.readexactly(int(length or 0)))
                await self.talk(number, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.open -= 1
            writer.transport.abort()


Talk = Callable[[int, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def speaking(
    wire: Wire, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> AsyncIterator[str]:
    server = await asyncio.start_server(wire, host, 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    name = f"[{host}]" if ":" in host else host
    try:
        yield f"{'https' if tls else 'http'}://{name}:{port}"
    finally:
        server.close()
        await until(lambda: not wire.open)


@asynccontextmanager
async def client_of(wire: Wire, **options: Any) -> AsyncIterator[Client]:
    async with speaking(wire) as url, Client(connection_to(url), attempts=1, **options) as client:
        yield client


def says(*messages: bytes) -> Wire:
    """Return a server that gives one answer after the other, the last one for ever."""
    left = list(messages)

    async def talk(_: int, writer: asyncio.StreamWriter) -> None:
        writer.write(left.pop(0) if len(left) > 1 else left[0])

    return Wire(talk)


async def test_requests_at_the_same_time_have_connections_of_their_own() -> None:
    """And they are kept for the next round."""
    wire = says(OK)
    async with client_of(wire) as client:
        for _ in range(2):
            await asyncio.gather(*(client.get(WIDGETS, "a", "red") for _ in range(4)))
    assert wire.connections == 4


@pytest.mark.parametrize(
    "answer",
    [
        STREAM + chunk(b"{") + chunk(b"}") + b"0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" + OK,
        b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{}",
    ],
)
async def test_every_form_of_answer_is_read(answer: bytes) -> None:
    """Chunks, an interim answer first, an end that only the connection's end tells."""

    async def talk(_: int, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        if b"close" in answer:
            await writer.drain()
            writer.close()

    async with client_of(Wire(talk)) as client:
        assert await client.get(WIDGETS, "a", "red") == {}
        assert await client.get(WIDGETS, "a", "red") == {}


async def test_a_connection_nobody_used_for_long_is_not_used_for_a_write() -> None:
    """The server may be about to close it, and a write that meets that has no answer."""
    wire = says(OK)
    async with client_of(wire) as client:
        await client.patch(WIDGETS, "a", {}, "red")
        assert client._transport is not None
        client._transport._free[0].free_since -= 16
        await client.patch(WIDGETS, "a", {}, "red")
        await until(lambda: wire.open == 1)
    assert wire.connections == 2


async def hang_up_on_second(_: int, writer: asyncio.StreamWriter) -> None:
    if getattr(writer, "answered", False):
        writer.transport.abort()
    else:
        writer.answered = True  # type: ignore[attr-defined]
        writer.write(OK)


async def test_a_read_that_met_a_closing_connection_is_sent_once_more() -> None:
    """The server closed it for idleness while the request was on its way."""
    wire = Wire(hang_up_on_second)
    async with client_of(wire) as client:
        for _ in range(4):
            await client.get(WIDGETS, "a", "red")
    assert (wire.connections, len(wire.requests)) == (4, 7)


async def test_an_answer_that_takes_too_long_is_none() -> None:
    """However often a few of its bytes arrive."""

    async def talk(_: int, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM)
        while not writer.is_closing():
            writer.write(chunk(b" "))
            await asyncio.sleep(0.02)

    async with client_of(Wire(talk), timeout_seconds=0.2) as client:
        with pytest.raises(Unreachable, match="it took too long"):
            await client.get(WIDGETS, "a", "red")


class Falling:
    """A fence that falls after so many looks."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def seconds_left(self) -> float:
        self.looks -= 1
        if self.looks < 0:
            raise LeaseLost("the lease is over")
        return 10.0


async def test_the_fence_is_asked_when_the_connection_stands() -> None:
    """Connecting may take longer than the lease; the connection itself is as good as before."""
    wire = says(OK)
    async with client_of(wire) as client:
        client.fence = Falling(1)
        with pytest.raises(LeaseLost):
            await client.patch(WIDGETS, "a", {}, "red")
        assert wire.requests == []
        client.fence = Falling(1)
        await client.patch(WIDGETS, "a", {}, "red")
    assert (wire.connections, len(wire.requests)) == (1, 1)


async def test_the_connection_of_a_watch_that_ended_is_used_again() -> None:
    """Watches end every few minutes."""
    wire = says(STREAM + chunk(BOOKMARK) + b"0\r\n\r\n", OK)
    async with client_of(wire) as client:
        events = [event async for event in client.watch(WIDGETS, since="1", seconds=1)]
        await client.get(WIDGETS, "a", "red")
    assert (len(events), wire.connections) == (1, 1)


async def test_lines_that_came_before_a_cut_are_given() -> None:
    """They are true; the watch is resumed behind them."""

    async def talk(_: int, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM + chunk(BOOKMARK * 2 + b'{"type":'))
        await writer.drain()
        writer.close()

    async with client_of(Wire(talk)) as client:
        events = client.watch(WIDGETS, since="1", seconds=1)
        assert [(await anext(events)).type for _ in range(2)] == ["BOOKMARK"] * 2
        with pytest.raises(Unreachable):
            await anext(events)


async def test_a_watch_that_is_refused_says_for_how_long() -> None:
    """The reflector waits as long as the server asks."""
    wire = says(b"HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n")
    async with client_of(wire) as client:
        with pytest.raises(Overloaded) as caught:
            async for _ in client.watch(WIDGETS, since="1", seconds=1):
                pass
    assert caught.value.retry_after == 7


@pytest.mark.parametrize("host", ["::1", "localhost"])
async def test_hosts_of_every_form_are_reached(host: str) -> None:
    """IPv6 addresses have brackets in URLs and in the Host header, and nowhere else."""
    wire = says(OK)
    async with speaking(wire, host) as url, Client(connection_to(url)) as client:
        await client.get(WIDGETS, "a", "red")
    named = url.removeprefix("http://").encode()
    assert b"\r\nHost: " + named + b"\r\n" in wire.requests[0]


async def test_a_path_before_the_api_is_kept_and_names_are_quoted() -> None:
    """Some clusters are reached through a path of another server."""
    wire = says(OK)
    async with speaking(wire) as url, Client(connection_to(url + "/k8s/c-1/")) as client:
        await client.get(WIDGETS, "a b\r\nX: y", "red")
    name = b"a%20b%0D%0AX:%20y"
    path = b"/k8s/c-1/apis/example.com/v1/namespaces/red/widgets/" + name
    assert wire.requests[0].startswith(b"GET " + path + b" HTTP/1.1\r\nHost: ")


@pytest.mark.parametrize("server", ["localhost:6443", "https://", "https://a:b", "ftp://a", ""])
async def test_what_is_no_address_is_said_at_once(server: str) -> None:
    """It comes out of a file somebody wrote."""
    with pytest.raises(NoCluster):
        async with Client(connection_to(server)):
            pass


LOOPS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
Run = Callable[[Coroutine[Any, Any, None]], None]


async def talk_over_tls() -> None:
    pair = fresh(("localhost", "127.0.0.1"), datetime.now(UTC), Lifetimes())
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    pair.install(serving)
    trust = ssl.create_default_context(cadata=pair.authorities.decode())

    async def talk(_: int, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM + chunk(BOOKMARK) if b"watch=1" in wire.requests[-1] else OK)

    wire = Wire(talk)
    async with speaking(wire, tls=serving) as url:
        connection = Connection(url, trust, StaticToken("t"), server_name="localhost")
        async with Client(connection) as client:
            await asyncio.gather(*(client.get(WIDGETS, "a", "red") for _ in range(3)))
            events = client.watch(WIDGETS, since="1", seconds=1)
            assert (await anext(events)).type == "BOOKMARK"
        with pytest.raises(Unreachable):
            await anext(events)
        async with Client(Connection(url, ssl.create_default_context(), StaticToken("t"))) as other:
            with pytest.raises(Unreachable, match="certificate verify failed"):
                await other.patch(WIDGETS, "a", {}, "red")
        wrong = Connection(url, trust, StaticToken("t"), server_name="example.com")
        async with Client(wrong) as other:
            with pytest.raises(Unreachable, match="certificate verify failed"):
                await other.patch(WIDGETS, "a", {}, "red")


@LOOPS
async def test_tls_is_verified_and_everything_ends_with_the_client(run: Run) -> None:
    """Idle connections and a watch under way are closed without a warning, on either loop."""
    await asyncio.to_thread(run, talk_over_tls())
