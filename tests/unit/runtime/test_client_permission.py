"""Whether the client may: tokens that are refused, and the fence before every write."""

import asyncio

import pytest
from aiohttp import web

from loopback import answering, connection_to
from novacron.runtime.client import Client
from novacron.runtime.errors import LeaseLost, Unauthorized, Unreachable
from scripted import WIDGET, WIDGETS, Server, client_of, said


class Tokens:
    """Credentials that go bad: each forget brings the next token."""

    def __init__(self, *tokens: str) -> None:
        self.tokens = list(tokens)
        self.forgotten = 0

    async def header(self) -> str | None:
        return f"Bearer {self.tokens[0]}"

    def forget(self) -> None:
        self.forgotten += 1
        if len(self.tokens) > 1:
            self.tokens.pop(0)


async def test_a_refused_token_is_forgotten_and_the_next_one_tried_at_once() -> None:
    """Tokens rotate under a running client; a 401 took no effect, so writes are repeated too."""
    server = Server(said(401))
    async with client_of(server, Tokens("old", "new")) as client:
        await client.patch(WIDGETS, "a", {}, "red")
        assert client.sleep == []
    assert [ask.headers["Authorization"] for ask in server.asked] == ["Bearer old", "Bearer new"]


async def test_a_token_refused_after_another_fault_still_gets_its_second_chance() -> None:
    """The two kinds of retries are counted apart."""
    server = Server(said(429), said(401))
    async with client_of(server, Tokens("old", "new")) as client:
        await client.patch(WIDGETS, "a", {}, "red")
    assert len(server.asked) == 3


async def test_a_second_refusal_is_final() -> None:
    """Otherwise a revoked identity would knock for ever."""
    server = Server(said(401), said(401), said(401))
    async with client_of(server, Tokens("old", "new")) as client:
        with pytest.raises(Unauthorized):
            await client.get(WIDGETS, "a", "red")
    assert len(server.asked) == 2


async def test_a_watch_refused_for_its_token_makes_it_forgotten() -> None:
    """Or the watch would go on failing until the token's cache time is over."""
    tokens = Tokens("old", "new")
    async with client_of(Server(said(401)), tokens) as client:
        with pytest.raises(Unauthorized):
            async for _ in client.watch(WIDGETS, since="1", seconds=1):
                pass
        assert client.observer == [("watch", 401)]
    assert tokens.forgotten == 1


class Deadline:
    """A fence that lets writes through for a while."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def seconds_left(self) -> float:
        if self.seconds <= 0:
            raise LeaseLost("the lease is over")
        return self.seconds


async def test_behind_the_fence_nothing_is_written_and_everything_read() -> None:
    """A process without its lease may look, but not touch."""
    server = Server()
    async with client_of(server) as client:
        client.fence = Deadline(0)
        for write in (
            client.create(WIDGETS, WIDGET),
            client.replace(WIDGETS, WIDGET),
            client.patch(WIDGETS, "a", {}, "red"),
            client.apply(WIDGETS, WIDGET),
            client.delete(WIDGETS, "a", "red"),
        ):
            with pytest.raises(LeaseLost):
                await write
        await client.get(WIDGETS, "a", "red")
    assert [ask.method for ask in server.asked] == ["GET"]


async def test_a_write_is_given_up_when_the_lease_ends() -> None:
    """A write that is answered after the lease was taken could undo the new holder's."""

    async def slow(_: web.Request) -> web.StreamResponse:
        await asyncio.sleep(60)
        return web.json_response(WIDGET)

    async with answering(slow) as url, Client(connection_to(url)) as client:
        client.fence = Deadline(0.2)
        begun = asyncio.get_running_loop().time()
        with pytest.raises(Unreachable):
            await client.patch(WIDGETS, "a", {}, "red")
        assert asyncio.get_running_loop().time() - begun < 5


async def test_a_lease_lost_between_two_attempts_stops_the_second() -> None:
    """The fence is asked before every attempt, not before every call."""
    server = Server(said(429, after=1))
    async with client_of(server) as client:
        client.fence = fence = Deadline(10)

        async def sleep(_: float) -> None:
            fence.seconds = 0

        client.sleep = sleep
        with pytest.raises(LeaseLost):
            await client.patch(WIDGETS, "a", {}, "red")
    assert len(server.asked) == 1


class SlowToken:
    """Credentials that take their time, as plug-ins do."""

    def __init__(self, fence: Deadline) -> None:
        self.fence = fence

    async def header(self) -> str | None:
        self.fence.seconds = 0  # meanwhile the lease runs out
        return None

    def forget(self) -> None:
        pass


async def test_the_fence_is_asked_after_the_credentials() -> None:
    """A login that took longer than the lease must not be followed by a write."""
    server, fence = Server(), Deadline(10)
    async with client_of(server, SlowToken(fence)) as client:
        client.fence = fence
        with pytest.raises(LeaseLost):
            await client.patch(WIDGETS, "a", {}, "red")
    assert server.asked == []
