"""An API server on loopback that gives the answers it is told, and a client that waits for none."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

from aiohttp import web

from loopback import answering, connection_to
from novacron.runtime.client import Client
from novacron.runtime.credentials import Credentials
from novacron.runtime.resource import Resource

__all__ = ["WIDGET", "WIDGETS", "Server", "client_of", "said"]

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
WIDGET = {"metadata": {"name": "a", "namespace": "red"}}


def said(code: int, *, reason: str = "", after: int | None = None) -> web.Response:
    """Return an answer with a Status object, as the API server gives it."""
    body = {"kind": "Status", "code": code, "reason": reason, "message": f"said {code}"}
    headers = {} if after is None else {"Retry-After": str(after)}
    return web.json_response(body, status=code, headers=headers)


class Server:
    """Gives its answers in order, the last one for ever; keeps what it was asked."""

    def __init__(self, *answers: web.StreamResponse | None) -> None:
        self.answers = list(answers)
        self.asked: list[web.Request] = []
        self.bodies: list[bytes] = []

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request)
        self.bodies.append(await request.read())
        answer = self.answers.pop(0) if self.answers else web.json_response(WIDGET)
        if answer is None:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        return answer


class Requests(list[tuple[str, int]]):
    """Counts requests by verb and code."""

    def request_done(self, verb: str, code: int, seconds: float) -> None:
        assert seconds >= 0
        self.append((verb, code))


class Pauses(list[float]):
    """Sleeps that take no time."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


@asynccontextmanager
async def client_of(
    server: Server, credentials: Credentials | None = None
) -> AsyncIterator[Client]:
    async with (
        answering(server) as url,
        Client(
            connection_to(url, credentials), observer=Requests(), sleep=Pauses(), random=Random(1)
        ) as client,
    ):
        yield client
