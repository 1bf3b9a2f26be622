"""Talks to one API server: plain dictionaries in and out, typed errors, patience, one fence.

Every request passes ``Client.send``, so that metrics, the fence before writes and retries exist
once, and tests can count or break requests in one place.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import TracebackType
from typing import NamedTuple, Protocol, Self

import orjson

from novacron.runtime.connection import Connection, from_kubeconfig, from_pod
from novacron.runtime.errors import (
    ApiError,
    Overloaded,
    Unauthorized,
    Unreachable,
    error_for,
    error_from,
)
from novacron.runtime.http_lines import Lines
from novacron.runtime.nesting import loads
from novacron.runtime.request import Request
from novacron.runtime.resource import Object, Resource
from novacron.runtime.transport import Transport

__all__ = ["Client", "Fence", "Observer", "Page", "Request", "WatchEvent"]

MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"  # the server reads JSON under this name too
PAGE_SIZE = 500
LONGEST_PAUSE_SECONDS = 30.0


class Fence(Protocol):
    """Says whether this process may still write."""

    def seconds_left(self) -> float:
        """Return how long writes stay safe; raise LeaseLost when they are not."""


class Observer(Protocol):
    """Is told of every request and its end."""

    def request_done(self, verb: str, code: int, seconds: float) -> None:
        """Count one request."""


class WatchEvent(NamedTuple):
    """One line of a watch."""

    type: str
    object: Object


class Page(NamedTuple):
    """A part of a list."""

    items: list[Object]
    resource_version: str
    next: str


@dataclass(slots=True)
class Client:
    """One identity at one API server."""

    connection: Connection
    fence: Fence | None = None
    observer: Observer | None = None
    timeout_seconds: float = 30.0
    attempts: int = 6
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Random = field(default_factory=Random)
    _transport: Transport | None = None

    @classmethod
    def from_kubeconfig(cls, path: Path | None = None, context: str | None = None) -> "Client":
        """Return a client for a kubeconfig's context, or for the pod this runs in."""
        named = path or context or os.environ.get("KUBECONFIG")
        inside = None if named else from_pod()
        return cls(inside or from_kubeconfig(path, context))

    async def __aenter__(self) -> Self:
        self._transport = Transport(self.connection)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._transport:
            await self._transport.close()

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        """Return one object as it is now."""
        return await self._object(Request("get", "GET", resource.path(namespace, name)))

    async def create(
        self, resource: Resource, body: Object, namespace: str | None = None
    ) -> Object:
        """Create an object."""
        path = resource.path(namespace or body["metadata"].get("namespace"))
        return await self._object(Request("create", "POST", path, body=orjson.dumps(body)))

    async def replace(
        self, resource: Resource, body: Object, *, subresource: str | None = None
    ) -> Object:
        """Replace an object; its resourceVersion, when there, is a precondition."""
        metadata = body["metadata"]
        path = resource.path(metadata.get("namespace"), metadata["name"], subresource)
        return await self._object(Request("update", "PUT", path, body=orjson.dumps(body)))

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Object,
        namespace: str | None = None,
        *,
        subresource: str | None = None,
    ) -> Object:
        """Merge a patch into an object; a resourceVersion in it is a precondition."""
        path = resource.path(namespace, name, subresource)
        request = Request("patch", "PATCH", path, {}, orjson.dumps(body), MERGE_PATCH)
        return await self._object(request)

    async def apply(self, resource: Resource, body: Object, *, manager: str = "novacron") -> Object:
        """Apply an object server-side: created when absent, our fields set when there."""
        metadata = body["metadata"]
        path = resource.path(metadata.get("namespace"), metadata["name"])
        query = {"fieldManager": manager, "force": "true"}
        request = Request("apply", "PATCH", path, query, orjson.dumps(body), APPLY_PATCH)
        return await self._object(request)

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
    ) -> None:
        """Delete an object, only the one with this UID when one is given."""
        body = orjson.dumps({"preconditions": {"uid": uid}}) if uid else None
        await self.send(Request("delete", "DELETE", resource.path(namespace, name), body=body))

    async def page(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        limit: int = PAGE_SIZE,
        next_page: str = "",
        selector: str | None = None,
        labels: str | None = None,
    ) -> Page:
        """Return one page of a list, read consistently."""
        query = {"limit": str(limit)} | _selectors(selector, labels)
        if next_page:
            query["continue"] = next_page
        answer = await self._object(Request("list", "GET", resource.path(namespace), query))
        metadata, items = answer["metadata"], answer.get("items") or []
        for item in items:  # those of built-in kinds do not say what they are
            item.setdefault("apiVersion", resource.api_version)
            item.setdefault("kind", resource.kind)
        return Page(items, metadata["resourceVersion"], metadata.get("continue", ""))

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        selector: str | None = None,
        labels: str | None = None,
    ) -> list[Object]:
        """Return all objects of a collection."""
        pages = self.pages(resource, namespace, selector=selector, labels=labels)
        return [item async for page in pages for item in page.items]

    async def pages(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        limit: int = PAGE_SIZE,
        selector: str | None = None,
        labels: str | None = None,
    ) -> AsyncGenerator[Page, None]:
        """Read a collection part by part, all of them at one resource version."""
        page = Page([], "", "")
        while page.next or not page.resource_version:
            page = await self.page(
                resource,
                namespace,
                limit=limit,
                next_page=page.next,
                selector=selector,
                labels=labels,
            )
            yield page

    async def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        since: str,
        seconds: int,
        selector: str | None = None,
        labels: str | None = None,
        begun: Callable[[], None] | None = None,
    ) -> AsyncIterator[WatchEvent]:
        """Follow a collection from a resource version until the server or the time ends it.

        ``begun`` is called when the server has agreed to tell.
        """
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": since,
            "timeoutSeconds": str(seconds),
        } | _selectors(selector, labels)
        request = Request("watch", "GET", resource.path(namespace), query)
        try:
            lines = await self._begin(request)
            if begun is not None:
                begun()
            with closing(lines):
                async for line in lines:
                    yield self._event(line)
        except Unauthorized:
            self.connection.credentials.forget()
            raise
        except (OSError, ValueError) as error:
            raise self._unreachable(error) from error

    async def _begin(self, request: Request) -> Lines:
        authorization = await self.connection.credentials.header()
        try:
            answer, lines = await self._way.follow(request, authorization)
        except OSError:
            self._count(request.verb, 0, 0.0)
            raise
        self._count(request.verb, answer.status, 0.0)
        if answer.status != 200:
            raise error_from(answer.status, answer.body, answer.retry_after)
        return lines

    @staticmethod
    def _event(line: bytes) -> WatchEvent:
        event = loads(line)
        try:
            kind, obj = event["type"], event["object"]
        except (KeyError, TypeError) as error:
            raise ValueError("a line of the watch is no event") from error
        if kind == "ERROR":
            raise error_for(obj.get("code") or 500, obj)
        return WatchEvent(kind, obj)

    async def _object(self, request: Request) -> Object:
        body = await self.send(request)
        try:
            return loads(body)
        except orjson.JSONDecodeError as error:
            raise ApiError(f"the API server's answer is not JSON: {error}") from error

    async def send(self, request: Request) -> bytes:
        """Send a request until it is answered or patience ends; raise ApiError otherwise.

        Only what cannot have taken effect is sent again: reads, and whatever the server refused
        unseen (429, or 503 with Retry-After). A write without an answer is the caller's to judge.
        """
        attempt, refused = 0, False
        while True:
            attempt += 1
            try:
                return await self._send_once(request)
            except Unauthorized:
                self.connection.credentials.forget()
                if refused:
                    raise
                refused = True
            except (Overloaded, Unreachable) as error:
                if attempt >= self.attempts or not self._may_repeat(request, error):
                    raise
                await self.sleep(self._pause(attempt, error))

    @staticmethod
    def _may_repeat(request: Request, error: ApiError) -> bool:
        refused_unseen = error.code == 429 or (error.code == 503 and error.retry_after is not None)
        return refused_unseen or not request.writes

    def _pause(self, attempt: int, error: ApiError) -> float:
        if error.retry_after is not None:
            return min(error.retry_after, LONGEST_PAUSE_SECONDS) * self.random.uniform(1.0, 1.1)
        return min(0.1 * 2.0**attempt, 5.0) * self.random.uniform(0.5, 1.0)

    async def _send_once(self, request: Request) -> bytes:
        way = self._way
        authorization = await self.connection.credentials.header()
        seconds, permit = self.timeout_seconds, None
        if request.writes and self.fence is not None:
            # A write that outlives the lease could meet a new leader's: it may not last longer.
            permit = self.fence.seconds_left
            seconds = min(seconds, permit())
        loop = asyncio.get_running_loop()
        started = loop.time()
        code = 0
        try:
            answer = await way.ask(request, authorization, started + seconds, permit)
            code = answer.status
        except OSError as error:
            raise self._unreachable(error) from error
        finally:
            self._count(request.verb, code, loop.time() - started)
        if code >= 300:
            raise error_from(code, answer.body, answer.retry_after)
        return answer.body

    @property
    def _way(self) -> Transport:
        if self._transport is None:
            raise RuntimeError("the client is used before it was entered")
        return self._transport

    def _unreachable(self, error: BaseException) -> Unreachable:
        what = str(error) or type(error).__name__
        return Unreachable(f"no answer from the API server at {self.connection.server}: {what}")

    def _count(self, verb: str, code: int, seconds: float) -> None:
        if self.observer is not None:
            self.observer.request_done(verb, code, seconds)


def _selectors(fields: str | None, labels: str | None) -> dict[str, str]:
    """Return how a request says which objects of a collection it is about."""
    said = {"fieldSelector": fields, "labelSelector": labels}
    return {name: value for name, value in said.items() if value}
