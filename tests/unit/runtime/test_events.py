"""Events: counted, held back past a burst, never in the way."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from novacron.runtime.errors import Forbidden, LeaseLost, NotFound
from novacron.runtime.events import BURST, LONGEST_BACKLOG, PER_SECOND, Events
from novacron.runtime.resource import EVENTS, Object, Resource

pytestmark = pytest.mark.looptime


def widget(name: str = "a", namespace: str = "red") -> Object:
    metadata = {"name": name, "uid": f"uid-{name}"}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata}


class Posts:
    """The two calls of a client that events need, with a memory."""

    def __init__(self) -> None:
        self.created: list[Object] = []
        self.patched: list[tuple[str, Object]] = []
        self.failures: list[Exception] = []

    async def create(self, resource: Resource, body: Object, namespace: str) -> Object:
        assert resource == EVENTS
        assert namespace == body["metadata"]["namespace"]
        self._fail()
        self.created.append(body)
        return body

    async def patch(self, resource: Resource, name: str, body: Object, namespace: str) -> Object:
        assert (resource, namespace) == (EVENTS, "red")
        self._fail()
        self.patched.append((name, body))
        return body

    def _fail(self) -> None:
        if self.failures:
            raise self.failures.pop(0)


def events_to(posts: Any) -> Events:
    return Events(posts, "novacron", clock=lambda: datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))


@asynccontextmanager
async def running(events: Events) -> AsyncIterator[None]:
    task = asyncio.create_task(events.run())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_an_event_says_what_happened_to_which_object() -> None:
    """kubectl describe finds events by these fields."""
    posts = Posts()
    events = events_to(posts)
    async with running(events):
        events.warning(widget(), "NoHostFits", "no host has 64 CPUs")
        await asyncio.sleep(1)
    (event,) = posts.created
    name = event["metadata"].pop("name")
    assert name.startswith("a.")
    assert event == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": "red"},
        "involvedObject": {
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "name": "a",
            "namespace": "red",
            "uid": "uid-a",
        },
        "type": "Warning",
        "reason": "NoHostFits",
        "message": "no host has 64 CPUs",
        "source": {"component": "novacron"},
        "reportingComponent": "novacron",
        "firstTimestamp": "2026-01-02T03:04:05Z",
        "lastTimestamp": "2026-01-02T03:04:05Z",
        "count": 1,
    }


async def test_an_event_about_something_without_a_namespace_lives_in_default() -> None:
    """The server demands it."""
    posts = Posts()
    events = events_to(posts)
    events.normal(widget(namespace=""), "Ready", "all is well")
    await events.flush()
    assert posts.created[0]["metadata"]["namespace"] == "default"
    assert "namespace" not in posts.created[0]["involvedObject"]


async def test_a_repeated_event_is_counted() -> None:
    """A failing object says the same thing for days; one event with a number is enough."""
    posts = Posts()
    events = events_to(posts)
    async with running(events):
        for _ in range(3):
            events.normal(widget(), "Waiting", "still")
        await asyncio.sleep(1)
        events.normal(widget(), "Waiting", "still")
        await asyncio.sleep(1)
        events.normal(widget(), "Waiting", "something else")
        events.normal(widget("b"), "Waiting", "still")
        await asyncio.sleep(1)
    assert [event["count"] for event in posts.created] == [3, 1, 1]
    name = posts.created[0]["metadata"]["name"]
    assert posts.patched == [(name, {"count": 4, "lastTimestamp": "2026-01-02T03:04:05Z"})]


async def test_an_event_the_server_has_forgotten_begins_anew() -> None:
    """They live an hour there."""
    posts = Posts()
    events = events_to(posts)
    events.normal(widget(), "Waiting", "still")
    await events.flush()
    posts.failures = [NotFound("gone")]
    events.normal(widget(), "Waiting", "still")
    await events.flush()
    assert [event["count"] for event in posts.created] == [1, 1]


@pytest.mark.parametrize("failure", [Forbidden("terminating"), LeaseLost("lost")])
async def test_an_event_that_cannot_be_posted_is_let_go(failure: Exception) -> None:
    """Events are never in the way, and the next one is tried."""
    posts = Posts()
    posts.failures = [failure]
    events = events_to(posts)
    async with running(events):
        events.normal(widget("a"), "Ready", "x")
        events.normal(widget("b"), "Ready", "x")
        await asyncio.sleep(1)
    assert [event["involvedObject"]["name"] for event in posts.created] == ["b"]


async def test_past_a_burst_events_trickle() -> None:
    """A thousand new objects must not cost a thousand writes at once."""
    posts = Posts()
    events = events_to(posts)
    for number in range(1000):
        events.normal(widget(str(number)), "Created", "x")
    async with running(events):
        await asyncio.sleep(0.01)
        assert len(posts.created) == BURST
        await asyncio.sleep(10)
        assert len(posts.created) - BURST == pytest.approx(10 * PER_SECOND, abs=5)
    await events.flush()
    assert len(posts.created) == 1000


async def test_single_events_over_time_use_one_allowance_each() -> None:
    """A quiet operator's burst is there in full when it is needed."""
    posts = Posts()
    events = events_to(posts)
    async with running(events):
        for number in range(BURST):
            events.normal(widget(str(number)), "Created", "x")
            await asyncio.sleep(0.0001)
        assert len(posts.created) == BURST


async def test_the_backlog_has_an_end() -> None:
    """Memory is worth more than one event too many."""
    events = events_to(Posts())
    for number in range(LONGEST_BACKLOG + 1000):
        events.normal(widget(str(number)), "Created", "x")
    posts = Posts()
    events.client = posts  # type: ignore[assignment]
    await events.flush()
    assert len(posts.created) == LONGEST_BACKLOG


@pytest.mark.parametrize("name", ["n" * 253, "n" * 235 + "-x" + "y" * 16, "n" * 235 + ".x"])
async def test_a_name_at_the_limit_gives_an_event_name_within_it(name: str) -> None:
    """The server refuses names of more than 253 characters, and "-." within one."""
    posts = Posts()
    events = events_to(posts)
    events.normal(widget(name), "Created", "m" * 5000)
    await events.flush()
    (event,) = posts.created
    assert len(event["metadata"]["name"]) <= 253
    assert "-." not in event["metadata"]["name"]
    assert ".." not in event["metadata"]["name"]
    assert len(event["message"]) == 1024
