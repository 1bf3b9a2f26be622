"""The server of probes and reviews, asked in raw bytes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from loopback import until
from novacron.runtime.http_server import Ask, HttpServer, Reply

GET = b"GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\n"


class Answers:
    """Says back what was asked, or fails."""

    def __init__(self) -> None:
        self.asked: list[Ask] = []
        self.size = 0

    def __call__(self, ask: Ask) -> Reply:
        self.asked.append(ask)
        if ask.path == "/broken":
            raise RuntimeError("a secret detail")
        return Reply(200, b"x" * self.size or ask.body or ask.path.encode())


@asynccontextmanager
async def serving(
    answers: Answers, keep_alive_seconds: float = 60
) -> AsyncIterator[tuple[HttpServer, int]]:
    server = HttpServer(answers, largest_body=1000, keep_alive_seconds=keep_alive_seconds)
    port = await server.listen("127.0.0.1", 0, None)
    try:
        yield server, port
    finally:
        await server.stop(1)


@asynccontextmanager
async def caller(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()
        await asyncio.sleep(0)


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    async with asyncio.timeout(20):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.partition("Content-Length: ")[2].partition("\r\n")[0])
        return int(head.split()[1]), await reader.readexactly(length)


async def ended(reader: asyncio.StreamReader) -> bool:
    async with asyncio.timeout(20):
        return await reader.read() == b""


async def test_requests_of_one_connection_are_answered_in_order() -> None:
    """Even when they are sent without waiting, in pieces, or with a body in chunks."""
    answers = Answers()
    async with serving(answers) as (_, port), caller(port) as (reader, writer):
        writer.write(GET * 3 + b"PO")
        assert [await answer(reader) for _ in range(3)] == [(200, b"/a")] * 3
        writer.write(b"ST /p HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
        assert await answer(reader) == (200, b"abc")
    assert answers.asked[0] == Ask("GET", "/a", "b=c", b"")
    assert answers.asked[3] == Ask("POST", "/p", "", b"abc")


@pytest.mark.parametrize(
    "request_bytes",
    [GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), b"GET / HTTP/1.0\r\n\r\n"],
)
async def test_whoever_wants_it_closed_gets_it_closed(request_bytes: bytes) -> None:
    """Old tools wait for the end of the connection."""
    async with serving(Answers()) as (_, port), caller(port) as (reader, writer):
        writer.write(request_bytes)
        assert (await answer(reader))[0] == 200
        assert await ended(reader)


async def test_a_head_without_a_body_is_given_when_asked() -> None:
    """Load balancers probe so."""
    async with serving(Answers()) as (_, port), caller(port) as (reader, writer):
        writer.write(b"HEAD /a HTTP/1.1\r\nConnection: close\r\n\r\n")
        text = await reader.read()
    assert text.startswith(b"HTTP/1.1 200 OK\r\n")
    assert text.endswith(b"Content-Length: 2\r\n\r\n")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", 400),
        (b"GET /" + b"a" * 70_000, 431),
        (b"POST / HTTP/1.1\r\nContent-Length: 1001\r\n\r\n" + b"x" * 1001, 413),
        (b"POST / HTTP/1.1\r\nContent-Length: 900000\r\n\r\n" + b"x" * 200_000, 413),
    ],
)
async def test_what_is_no_request_or_too_much_is_refused(sent: bytes, status: int) -> None:
    """With an answer, although the rest of it is still on its way."""
    answers = Answers()
    async with serving(answers) as (server, port), caller(port) as (reader, writer):
        writer.write(sent)
        assert (await answer(reader))[0] == status
        writer.close()
        await until(lambda: not server.connections)
    assert answers.asked == []


async def test_who_is_refused_and_goes_on_sending_is_cut_off() -> None:
    """There is time to read the answer, and not more."""
    async with serving(Answers()) as (_, port), caller(port) as (reader, writer):
        writer.write(b"no request\r\n\r\n")
        assert (await answer(reader))[0] == 400
        writer.write(GET)
        assert await ended(reader)


async def test_an_upgrade_is_answered_as_if_nobody_had_asked_for_one() -> None:
    """curl offers HTTP/2 this way."""
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA\r\n\r\n"
    async with serving(Answers()) as (_, port), caller(port) as (reader, writer):
        writer.write(b"GET /a HTTP/1.1\r\n" + offer)
        assert await answer(reader) == (200, b"/a")
        assert await ended(reader)


async def test_a_failure_of_ours_is_logged_and_not_told(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever asks is not who mends it; the connection goes on."""
    async with serving(Answers()) as (_, port), caller(port) as (reader, writer):
        writer.write(b"GET /broken HTTP/1.1\r\n\r\n" + GET)
        status, text = await answer(reader)
        assert (status, b"secret" in text) == (500, False)
        assert await answer(reader) == (200, b"/a")
    assert "cannot answer GET /broken" in caplog.text


async def test_quiet_connections_end() -> None:
    """And those that ask from time to time stay."""
    async with (
        serving(Answers(), keep_alive_seconds=0.5) as (_, port),
        caller(port) as (quiet, _),
        caller(port) as (reader, writer),
    ):
        for _ in range(4):
            await asyncio.sleep(0.2)
            writer.write(GET)
            await answer(reader)
        assert await ended(quiet)
        assert await ended(reader)


async def test_who_asks_on_and_never_reads_is_cut_off() -> None:
    """The answers would pile up in memory."""
    answers = Answers()
    answers.size = 2**20
    async with serving(answers) as (server, port), caller(port) as (_, writer):
        writer.write(GET * 1000)
        await until(lambda: bool(answers.asked) and not server.connections)
    assert len(answers.asked) < 100


async def test_a_long_answer_to_a_patient_reader_is_whole() -> None:
    """Metrics of a large cluster are longer than the buffers."""
    answers = Answers()
    answers.size = 2**23
    async with serving(answers) as (_, port), caller(port) as (reader, writer):
        for _ in range(2):
            writer.write(GET)
            assert len((await answer(reader))[1]) == 2**23


async def test_a_request_that_has_begun_is_answered_before_the_stop() -> None:
    """A review that is dropped amid its body fails somebody's create."""
    async with (
        serving(Answers()) as (server, port),
        caller(port) as (idle, _),
        caller(port) as (reader, writer),
    ):
        writer.write(GET + b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nab")
        assert await answer(reader) == (200, b"/a")
        writer.write(b"c")
        await until(lambda: len(server.connections) == 2)
        await asyncio.sleep(0.05)
        stopping = asyncio.create_task(server.stop(20))
        assert await ended(idle)
        writer.write(b"d")
        assert await answer(reader) == (200, b"abcd")
        assert await ended(reader)
        await stopping
