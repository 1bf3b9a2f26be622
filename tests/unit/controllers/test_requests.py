"""Requests of hooks: where they go, where they never go, and what counts as an answer."""

import asyncio
import contextlib
import http.server
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from certificates import Authority
from novacron.controllers.requests import Requests, is_out_of_bounds
from novacron.core.errors import Busy
from novacron.core.hooks import PRE_START, PRE_STOP, TIMED_OUT, HttpRequest, Ran

Served = tuple[int, list[tuple[str, str | None]], list[int]]

# Services at ports that anybody may listen at and hardly anybody does.
SERVICES = ("binkp", "asp", "dicom")


@pytest.fixture
def server() -> Iterator[Served]:
    """A server on loopback: its port, what it was asked, and what it will answer with."""
    yield from serving()


@pytest.fixture
def tls_server(tmp_path: Path) -> Iterator[Served]:
    """The same, encrypted, by a certificate of another's that nobody vouches for."""
    pair, file = Authority("nobody").pair("somebody", "10.0.0.7"), tmp_path / "pair.pem"
    file.write_bytes(pair.certificate + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    yield from serving(context)


@pytest.fixture
def service() -> Iterator[tuple[str, Served]]:
    """A server at the port of a service that goes by a name, with that name."""
    for name in SERVICES:
        with contextlib.suppress(OSError):
            port = socket.getservbyname(name, "tcp")
            socket.create_server(("127.0.0.1", port)).close()
            yield from ((name, served) for served in serving(port=port))
            return
    pytest.skip("no service is known by name here whose port is free")


def serving(context: ssl.SSLContext | None = None, port: int = 0) -> Iterator[Served]:
    """Serve until whoever asked for it is done."""
    asked: list[tuple[str, str | None]] = []
    answers: list[int] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers.get("X-Why")))
            self.send_response(answers.pop(0) if answers else 200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    running = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    if context is not None:
        running.socket = context.wrap_socket(running.socket, server_side=True)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield running.server_port, asked, answers
    running.shutdown()
    running.server_close()


async def ended(ask: Callable[[], Ran | None]) -> Ran:
    """Ask until there is an answer."""
    for _ in range(200):
        if (ran := ask()) is not None:
            return ran
        await asyncio.sleep(0.05)
    raise AssertionError("no answer")


def anywhere(_: object) -> bool:
    """For servers on loopback, where a request never goes otherwise."""
    return False


async def test_a_request_goes_to_the_machine_s_first_address_with_its_headers(server) -> None:
    """And what is under way is not sent again."""
    port, asked, _ = server
    requests = Requests(anywhere)
    request = HttpRequest(port, "/ready?x=1", headers=(("X-Why", "hook"),))
    with pytest.raises(Busy, match="no address yet"):
        requests.sent("u", PRE_START, request, ())
    ran = await ended(lambda: requests.sent("u", PRE_START, request, ("127.0.0.1", "10.0.0.9")))
    assert ran.code == 0
    assert asked == [("/ready?x=1", "hook")]


async def test_an_encrypted_request_asks_for_no_certificate_but_the_machine_s_own(
    tls_server: Served,
) -> None:
    """As a kubelet's probes: machines are known by addresses for which nobody vouches."""
    port, asked, _ = tls_server
    requests = Requests(anywhere)
    request = HttpRequest(port, "/ready", encrypted=True, headers=(("X-Why", "hook"),))
    ran = await ended(lambda: requests.sent("u", PRE_STOP, request, ("127.0.0.1",)))
    assert (ran.code, ran.note) == (0, "")
    assert asked == [("/ready", "hook")]


async def test_an_encrypted_request_is_never_sent_in_the_open(server: Served) -> None:
    """A machine that does not encrypt has not answered, and is told nothing."""
    port, asked, _ = server
    requests = Requests(anywhere)
    request = HttpRequest(port, encrypted=True)
    ran = await ended(lambda: requests.sent("u", PRE_STOP, request, ("127.0.0.1",)))
    assert (ran.code, ran.note) == (1, f"nobody answers on port {port}")
    assert asked == []


async def test_a_port_may_go_by_the_name_of_its_service(service: tuple[str, Served]) -> None:
    """By one of those that every system knows, as the operator's own does."""
    name, (_, asked, _) = service
    requests = Requests(anywhere)
    request = HttpRequest(name, "/named")
    ran = await ended(lambda: requests.sent("u", PRE_STOP, request, ("127.0.0.1",)))
    assert (ran.code, ran.note) == (0, "")
    assert asked == [("/named", None)]


async def test_before_a_start_it_is_repeated_until_it_is_answered_well(server) -> None:
    """A service takes a while to come up."""
    port, asked, answers = server
    answers += [503]
    requests = Requests(anywhere)
    ran = await ended(lambda: requests.sent("u", PRE_START, HttpRequest(port), ("127.0.0.1",)))
    assert ran.code == 0
    assert len(asked) == 2


async def test_before_a_stop_it_is_sent_once(server) -> None:
    """Whoever is not there any more need not be waited for."""
    port, asked, answers = server
    answers += [503]
    requests = Requests(anywhere)
    ran = await ended(lambda: requests.sent("u", PRE_STOP, HttpRequest(port), ("127.0.0.1",)))
    assert (ran.code, ran.note) == (1, "it was answered with status 503")
    assert len(asked) == 1


async def test_nobody_who_does_not_answer_is_waited_for_longer_than_allowed() -> None:
    """The time is the hook's own."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        request = HttpRequest(port, timeout=timedelta(seconds=0.3))
        requests = Requests(anywhere)
        ran = await ended(lambda: requests.sent("u", PRE_START, request, ("127.0.0.1",)))
    assert ran.code == TIMED_OUT


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "169.254.169.254", "::1"])
async def test_nothing_is_sent_where_a_tenant_has_no_business(server, host: str) -> None:
    """It is the operator that connects, from where tenants cannot."""
    port, asked, _ = server
    requests = Requests()
    request = HttpRequest(port, host=host)
    ran = await ended(lambda: requests.sent("u", PRE_START, request, ("10.0.0.9",)))
    assert "no address that requests may go to" in ran.note
    assert asked == []


@pytest.mark.parametrize(
    "address", ["::ffff:127.0.0.1", "fe80::1", "0.0.0.0", "224.0.0.1", "100.100.100.200"]
)
def test_disguises_are_seen_through(address: str) -> None:
    """An address has many spellings."""
    assert is_out_of_bounds(ipaddress.ip_address(address))
    assert not is_out_of_bounds(ipaddress.ip_address("10.0.1.10"))


@pytest.mark.parametrize(
    "request_", [HttpRequest(1, "/a b"), HttpRequest(1, headers=(("X", "a\r\nY: b"),))]
)
async def test_a_request_cannot_smuggle_another(request_: HttpRequest) -> None:
    """What is sent is what was written down, or nothing."""
    requests = Requests(anywhere)
    ran = await ended(lambda: requests.sent("u", PRE_START, request_, ("127.0.0.1",)))
    assert "characters that no request may have" in ran.note


async def test_a_port_by_a_name_that_nobody_knows_is_said() -> None:
    """Machines have no names for their ports."""
    requests = Requests(anywhere)
    ran = await ended(lambda: requests.sent("u", PRE_START, HttpRequest("web"), ("10.0.0.9",)))
    assert ran.note == "no port is called web; write its number"


@pytest.mark.parametrize("answer", [b"x" * 200_000, b"HTTP/1.1", b"HTTP/1.1 fine\n"])
async def test_an_answer_that_is_none_counts_as_no_answer(answer: bytes) -> None:
    """Whatever a machine sends: a line without end, half of one, or a status that is no number."""

    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(babble, "127.0.0.1", 0) as running:
        port = running.sockets[0].getsockname()[1]
        requests = Requests(anywhere)
        ran = await ended(lambda: requests.sent("u", PRE_STOP, HttpRequest(port), ("127.0.0.1",)))
    assert (ran.code, ran.note) == (1, f"nobody answers on port {port}")
