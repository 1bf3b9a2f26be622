"""The client on the wire: answers in pieces, broken ones, connections that end at a bad moment."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loopback import connection_to, until
from novacron.localcluster.pki import Authority
from novacron.runtime.client import Client
from novacron.runtime.connection import Connection
from novacron.runtime.credentials import Anonymous, StaticToken
from novacron.runtime.errors import ApiError, Unreachable
from novacron.runtime.resource import Resource

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
BODY = orjson.dumps({"metadata": {"name": "a", "resourceVersion": "7"}})
Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def plain(body: bytes, extra: str = "") -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{extra}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def chunked(*parts: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


@dataclass
class Wire:
    """A server that speaks bytes; ``script`` answers one request and may end the connection."""

    script: Script
    tls: ssl.SSLContext | None = None
    port: int = 0
    connections: int = 0
    requests: list[bytes] = field(default_factory=list)
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["Wire"]:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self.tls)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for writer in self.writers:
                writer.transport.abort()
            await server.wait_closed()
            await asyncio.sleep(0)

    @property
    def connection(self) -> Connection:
        return connection_to(f"http://127.0.0.1:{self.port}")

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.writers.append(writer)
        try:
            while not writer.is_closing():
                head = await reader.readuntil(b"\r\n\r\n")
                length = [
                    line for line in head.split(b"\r\n") if line.startswith(b"Content-Length")
                ]
                body = await reader.readexactly(int(length[0].split()[1])) if length else b""
                self.requests.append(head + body)
                await self.script(reader, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def says(*answers: bytes | None) -> Script:
    """Return a script that gives these answers in turn (None: hangs up), then plain ones."""
    left = list(answers)

    async def script(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answer = left.pop(0) if left else plain(BODY)
        if answer is None:
            writer.transport.abort()
        else:
            writer.write(answer)

    return script


@asynccontextmanager
async def talking(script: Script) -> AsyncIterator[tuple[Client, Wire]]:
    async with Wire(script).serving() as wire, Client(wire.connection) as client:
        yield client, wire


@pytest.mark.parametrize(
    "answer",
    [
        plain(BODY),
        chunked(BODY),
        chunked(BODY[:5], BODY[5:6], BODY[6:]),
        b"HTTP/1.1 100 Continue\r\n\r\n" + plain(BODY),
        plain(BODY, "Retry-After: soon\r\nX-Odd:\r\nConnection: keep-alive\r\n"),
    ],
)
@settings(deadline=None, max_examples=15, suppress_health_check=list(HealthCheck))
@given(cuts=st.lists(st.integers(1, 200), max_size=8))
async def test_an_answer_in_any_pieces_is_the_same_answer(answer: bytes, cuts: list[int]) -> None:
    """The network cuts where it likes."""

    async def script(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        begin = 0
        for cut in sorted({*cuts, len(answer)}):
            writer.write(answer[begin:cut])
            begin = cut
            await asyncio.sleep(0.001)

    async with talking(script) as (client, wire):
        for _ in range(2):
            assert await client.get(WIDGETS, "a", "red") == orjson.loads(BODY)
    assert wire.connections == 1


async def test_connections_are_used_again() -> None:
    """A TLS handshake costs as much as ten requests."""
    async with talking(says()) as (client, wire):
        for _ in range(5):
            await client.get(WIDGETS, "a", "red")
        assert wire.connections == 1
        await asyncio.gather(*(client.get(WIDGETS, "a", "red") for _ in range(4)))
        assert wire.connections <= 4


async def test_a_connection_the_server_wants_closed_is_not_used_again() -> None:
    """It says so in a header."""
    async with talking(says(plain(BODY, "Connection: close\r\n"))) as (client, wire):
        await client.get(WIDGETS, "a", "red")
        await client.create(WIDGETS, {"metadata": {}}, "red")
        assert wire.connections == 2


async def test_an_answer_that_ends_with_the_connection_is_whole() -> None:
    """The oldest way to say how long an answer is."""

    async def script(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.0 200 OK\r\n\r\n" + BODY)
        await writer.drain()
        writer.close()

    async with talking(script) as (client, _):
        assert await client.get(WIDGETS, "a", "red") == orjson.loads(BODY)


@pytest.mark.parametrize(
    "broken",
    [
        plain(BODY)[:-1],
        chunked(BODY)[:-7],
        plain(BODY)[:20],
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        b"\x15\x03\x01\x00\x02\x02\x16",
        b"",
    ],
)
async def test_half_an_answer_is_none(broken: bytes) -> None:
    """What came may even be valid JSON; a write is not sent twice because of it."""

    async def script(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(broken)
        await writer.drain()
        writer.close()

    async with talking(script) as (client, wire):
        with pytest.raises(Unreachable):
            await client.create(WIDGETS, {"metadata": {}}, "red")
        assert len(wire.requests) == 1


async def test_a_connection_that_ended_while_idle_is_noticed() -> None:
    """A restarted server closed it: the next write goes through on a new one."""
    async with talking(says()) as (client, wire):
        await client.get(WIDGETS, "a", "red")
        wire.writers[0].transport.abort()
        await asyncio.sleep(0.05)
        await client.create(WIDGETS, {"metadata": {}}, "red")
        assert (wire.connections, len(wire.requests)) == (2, 2)


@pytest.mark.parametrize("verb", ["create", "replace", "patch", "delete"])
async def test_a_write_on_a_connection_that_breaks_is_not_sent_again(verb: str) -> None:
    """Nobody knows whether it took effect; not even on a connection that worked before."""
    obj = {"metadata": {"name": "a", "namespace": "red"}}
    async with talking(says(plain(BODY), None)) as (client, wire):
        await client.get(WIDGETS, "a", "red")
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "create": lambda: client.create(WIDGETS, obj),
            "replace": lambda: client.replace(WIDGETS, obj),
            "patch": lambda: client.patch(WIDGETS, "a", {}, "red"),
            "delete": lambda: client.delete(WIDGETS, "a", "red"),
        }
        with pytest.raises(Unreachable):
            await calls[verb]()
        assert len(wire.requests) == 2


async def test_what_comes_unasked_ends_the_connection() -> None:
    """An answer to nothing must not become the answer to the next question."""
    stray = plain(orjson.dumps({"metadata": {"name": "somebody else's"}}))
    async with talking(says(plain(BODY) + stray)) as (client, _):
        for _ in range(3):
            assert (await client.get(WIDGETS, "a", "red"))["metadata"]["name"] == "a"


async def test_a_request_that_is_given_up_leaves_nothing_for_the_next() -> None:
    """The late answer to a cancelled request comes on a connection that nobody uses."""

    async def script(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        late = len(wire.requests) == 1
        await asyncio.sleep(0.2 if late else 0)
        writer.write(plain(orjson.dumps({"late": late})))

    async with Wire(script).serving() as wire, Client(wire.connection) as client:
        asking = asyncio.create_task(client.get(WIDGETS, "a", "red"))
        await until(lambda: len(wire.requests) == 1)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        for _ in range(3):
            assert await client.get(WIDGETS, "a", "red") == {"late": False}
            await asyncio.sleep(0.1)


def event(number: int, size: int = 0) -> bytes:
    metadata = {"resourceVersion": str(number), "pad": "x" * size}
    return orjson.dumps({"type": "ADDED", "object": {"metadata": metadata}}) + b"\n"


@settings(deadline=None, max_examples=15, suppress_health_check=list(HealthCheck))
@given(cuts=st.lists(st.integers(1, 900), max_size=10))
async def test_a_watch_in_any_pieces_is_the_same_watch(cuts: list[int]) -> None:
    """Lines, chunks and packets end at different places."""
    text = b"".join(event(number) for number in range(10))
    ends = sorted({cut for cut in cuts if cut < len(text)} | {len(text)})
    parts = [text[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]

    async with talking(says(chunked(*parts))) as (client, wire):
        events = [event async for event in client.watch(WIDGETS, since="1", seconds=5)]
        assert [int(event.object["metadata"]["resourceVersion"]) for event in events] == [
            *range(10)
        ]
        await client.get(WIDGETS, "a", "red")
        assert wire.connections == 1


@pytest.mark.parametrize("line", [b'{"no": "event"}', b"[]", b"not JSON"])
async def test_a_watch_that_says_something_else_is_begun_again(line: bytes) -> None:
    """Whatever stands between us and the server may speak; it must not end a cache for good."""
    async with talking(says(chunked(line + b"\n"))) as (client, _):
        with pytest.raises(Unreachable):
            async for _ in client.watch(WIDGETS, since="1", seconds=5):
                pass


async def test_a_reader_that_is_slow_makes_the_server_wait() -> None:
    """Otherwise a burst of changes would pile up in our memory."""
    sent: list[int] = []

    async def script(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for number in range(400):
            line = event(number, 100_000)
            writer.write(b"%x\r\n%s\r\n" % (len(line), line))
            await writer.drain()
            sent.append(number)
        writer.write(b"0\r\n\r\n")

    async with talking(script) as (client, _):
        received = []
        async for item in client.watch(WIDGETS, since="1", seconds=5):
            received.append(int(item.object["metadata"]["resourceVersion"]))
            if len(received) == 1:
                await asyncio.sleep(0.5)
                assert len(sent) < 300
        assert received == [*range(400)]


async def test_a_watch_that_is_left_ends_its_connection_only() -> None:
    """What the server still sends is nobody's; other requests are not disturbed."""

    async def script(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if b"watch=1" not in wire.requests[-1]:
            writer.write(plain(BODY))
            return
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while not writer.is_closing():
            line = event(1)
            writer.write(b"%x\r\n%s\r\n" % (len(line), line))
            await writer.drain()
            await asyncio.sleep(0.01)

    async with Wire(script).serving() as wire, Client(wire.connection) as client:

        async def follow() -> None:
            nonlocal seen
            async for _ in client.watch(WIDGETS, since="1", seconds=5):
                seen += 1

        seen = 0
        following = asyncio.create_task(follow())
        await until(lambda: seen > 2)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await until(wire.writers[0].is_closing)
        assert await client.get(WIDGETS, "a", "red") == orjson.loads(BODY)


async def test_leaving_the_client_ends_what_is_under_way() -> None:
    """Nothing is left for the event loop to complain of."""

    async def script(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    async with Wire(script).serving() as wire:
        async with Client(wire.connection, attempts=1) as client:
            asking = asyncio.create_task(client.get(WIDGETS, "a", "red"))
            await until(lambda: len(wire.requests) == 1)
        with pytest.raises(Unreachable):
            await asking


@pytest.mark.parametrize("token", ["two\nlines", "a\r\nX-Evil: 1", "nul\x00"])
async def test_a_token_cannot_smuggle_a_header(token: str) -> None:
    """A broken token file is told as such, and no request is made with it."""
    async with Wire(says()).serving() as wire:
        connection = Connection(wire.connection.server, None, StaticToken(token))
        async with Client(connection) as client:
            with pytest.raises(ApiError, match="credentials"):
                await client.get(WIDGETS, "a", "red")
            with pytest.raises(ApiError, match="credentials"):
                async for _ in client.watch(WIDGETS, since="1", seconds=1):
                    pass
        assert wire.requests == []


def server_tls(authority: Authority, *hosts: str) -> ssl.SSLContext:
    pair = authority.server("-".join(hosts), hosts)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    return context


@pytest.mark.parametrize(
    ("hosts", "server_name", "trusted"),
    [
        (("127.0.0.1",), None, True),
        (("kubernetes",), "kubernetes", True),
        (("kubernetes",), None, False),
        (("127.0.0.1",), "kubernetes", False),
    ],
)
async def test_a_server_is_who_its_certificate_says(
    tmp_path: Path, hosts: tuple[str, ...], server_name: str | None, trusted: bool
) -> None:
    """By the address, or by the name the kubeconfig gives; anybody else hears nothing of us."""
    authority = Authority(tmp_path, "test")
    tls = ssl.create_default_context(cafile=str(authority.pair.certificate))
    async with Wire(says(), server_tls(authority, *hosts)).serving() as wire:
        connection = Connection(
            f"https://127.0.0.1:{wire.port}", tls, Anonymous(), server_name=server_name
        )
        async with Client(connection, attempts=1) as client:
            if trusted:
                assert await client.get(WIDGETS, "a", "red") == orjson.loads(BODY)
                return
            with pytest.raises(Unreachable, match=r"(?i)certificate"):
                await client.get(WIDGETS, "a", "red")
        assert wire.requests == []


async def test_a_server_of_another_authority_is_not_spoken_to(tmp_path: Path) -> None:
    """Its certificate is good, but not from whom we trust."""
    ours, theirs = Authority(tmp_path / "ours", "ours"), Authority(tmp_path / "theirs", "theirs")
    tls = ssl.create_default_context(cafile=str(ours.pair.certificate))
    async with Wire(says(), server_tls(theirs, "127.0.0.1")).serving() as wire:
        connection = Connection(f"https://127.0.0.1:{wire.port}", tls, StaticToken("secret"))
        async with Client(connection, attempts=1) as client:
            with pytest.raises(Unreachable, match=r"(?i)certificate"):
                await client.get(WIDGETS, "a", "red")
        assert wire.requests == []
