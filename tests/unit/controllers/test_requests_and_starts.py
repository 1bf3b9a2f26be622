"""Requests of hooks over several starts and stops: what one was asked is no answer for the next."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from novacron.controllers.reconciler import MachineReconciler
from novacron.controllers.requests import Requests
from novacron.core.hooks import HttpRequest
from novacron.core.machine import Power
from unit.controllers.stage import Diary

ANSWER = b"HTTP/1.1 200 OK\r\n\r\n"


@pytest.fixture
async def request_() -> AsyncIterator[HttpRequest]:
    """A request to somebody who answers well and at once."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ANSWER)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield HttpRequest(server.sockets[0].getsockname()[1], host="127.0.0.1")


@pytest.fixture
def world(tmp_path: Path) -> Diary:
    """A host with room, and requests that may go to loopback."""
    world = Diary(tmp_path)
    requests = Requests(lambda _: False)
    world.reconciler = MachineReconciler(world, now=lambda: world.now, requests=requests)
    return world


async def answered() -> None:
    """Have an answer come that nobody looks at yet."""
    await asyncio.sleep(0.3)


async def test_what_one_start_was_asked_is_no_answer_for_the_next(
    world: Diary, request_: HttpRequest
) -> None:
    """A guest that has just begun is not ready because the one before it was."""
    world.hooks(request_)
    await world.round()
    await answered()
    world.change(power=Power.OFF)
    await world.round()
    world.change(power=Power.ON)
    await world.round()
    assert world.ready.reason == "HookRunning"
    await answered()
    await world.round()
    assert world.ready.status == "True"


async def test_what_a_guest_was_asked_that_is_gone_is_no_answer_for_the_one_made_anew(
    world: Diary, request_: HttpRequest
) -> None:
    """Whoever removed it by hand did not make the next one ready."""
    world.hooks(request_)
    await world.round()
    await answered()
    await world.driver.delete(world.machine.ref)
    await world.round()
    assert world.ready.reason == "HookRunning"


async def test_a_stop_that_is_taken_back_leaves_the_request_for_the_next_one(
    world: Diary, request_: HttpRequest
) -> None:
    """Also when the answer came after anybody looked."""
    world.hooks(pre_stop=request_)
    await world.round()
    world.change(power=Power.OFF)
    await world.round()
    await answered()
    world.change(power=Power.ON)
    await world.round()
    world.change(power=Power.OFF)
    await world.round()
    assert world.ready.reason == "HookRunning"
