"""Addresses given by flags, and what is said when they cannot be used."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from novacron.runtime.bind import BadBindAddress, Bind, CannotListen, PortTaken
from novacron.runtime.http_server import Ask, HttpServer, Reply

FLAG = "--metrics-bind-addr"


def parse(text: str) -> Bind | None:
    return Bind.parse(text, purpose="metrics", flag=FLAG)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        (":8080", "", 8080),
        ("127.0.0.1:0", "127.0.0.1", 0),
        ("localhost:65535", "localhost", 65535),
        ("[::1]:8081", "::1", 8081),
    ],
)
def test_addresses_are_read_as_go_programs_read_them(text: str, host: str, port: int) -> None:
    """Users bring these values from other operators."""
    bind = parse(text)
    assert bind
    assert (bind.host, bind.port, str(bind)) == (host, port, text)


@pytest.mark.parametrize("text", ["", "0"])
def test_nothing_and_zero_switch_a_listener_off(text: str) -> None:
    """As controller-runtime does it."""
    assert parse(text) is None


@pytest.mark.parametrize("text", ["8080", ":", ":http", ":65536", ":-1", "::1:80", "a:b:1", ":٣"])
def test_other_texts_are_refused_with_the_flag_and_the_right_form(text: str) -> None:
    """One sentence that says what to type instead."""
    with pytest.raises(BadBindAddress, match=f"{FLAG}={text} is not an address.*:port"):
        parse(text)


async def listen(bind: Bind) -> None:
    def nothing(ask: Ask) -> Reply:
        raise AssertionError("nobody asks")

    server = HttpServer(nothing, largest_body=0, keep_alive_seconds=1)
    try:
        await bind.listen(server)
    finally:
        await server.stop(1)


LOOPS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
Run = Callable[[Coroutine[Any, Any, None]], None]


@LOOPS
async def test_a_taken_port_is_one_sentence_with_the_flag_to_change_it(run: Run) -> None:
    """The commonest failure of a first start."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortTaken) as caught:
            await asyncio.to_thread(run, listen(Bind("127.0.0.1", port, "metrics", FLAG)))
    assert str(caught.value) == (
        f"cannot listen on 127.0.0.1:{port} for metrics: already in use; "
        "choose another with --metrics-bind-addr"
    )


@LOOPS
async def test_an_address_of_another_machine_is_one_sentence(run: Run) -> None:
    """It must not look like a taken port."""
    with pytest.raises(CannotListen, match="no such address on this machine; choose another"):
        await asyncio.to_thread(run, listen(Bind("192.0.2.1", 0, "metrics", FLAG)))
