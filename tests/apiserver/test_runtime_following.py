"""Following a resource of a real API server through everything that breaks."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from aiohttp import web

from loopback import Between, until
from novacron.localcluster.controlplane import ControlPlane
from novacron.runtime.cache import Cache, Change
from novacron.runtime.client import Client, WatchEvent
from novacron.runtime.connection import from_kubeconfig
from novacron.runtime.errors import ApiError, Conflict, NotFound, Overloaded, Unreachable
from novacron.runtime.reflector import Reflector
from novacron.runtime.resource import Key, Object, key_of
from widgets import WIDGETS, install_widgets, widget

MERGED = {"spec": {"round": 1}}


@pytest.fixture
async def widgets(control_plane: ControlPlane) -> None:
    await install_widgets(control_plane)


@pytest.fixture
async def between(control_plane: ControlPlane, widgets: None) -> AsyncIterator[Between]:
    async with Between(from_kubeconfig(control_plane.kubeconfig)).serving() as proxy:
        yield proxy


@pytest.fixture
async def admin(control_plane: ControlPlane, widgets: None) -> AsyncIterator[Client]:
    async with Client.from_kubeconfig(control_plane.kubeconfig) as client:
        yield client


class History(list[tuple[str, str, int]]):
    """Every change in order: name, "is" or "gone", and its number."""

    def __call__(self, change: Change) -> None:
        if change.object is None:
            self.append((change.key.name, "gone", 0))
        else:
            self.append((change.key.name, "is", change.object["spec"].get("round", 0)))


@asynccontextmanager
async def following(
    client: Client, namespace: str, page_size: int = 500
) -> AsyncIterator[Reflector]:
    """Follow the widgets of one namespace."""
    reflector = Reflector(client, Cache(WIDGETS), namespace, page_size=page_size)
    task = asyncio.create_task(reflector.run())
    try:
        yield reflector
        assert not task.done()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def truth(client: Client, namespace: str) -> dict[Key, Object]:
    """Return what the server has, as a cache would hold it."""
    objects = await client.list(WIDGETS, namespace)
    for obj in objects:
        obj["metadata"].pop("managedFields", None)
    return {key_of(obj): obj for obj in objects}


def content(cache: Cache) -> dict[Key, Object]:
    return {key_of(obj): obj for obj in cache.objects()}


async def test_a_list_in_pages_and_the_watch_after_it_are_seamless(
    between: Between, admin: Client, namespace: str
) -> None:
    """Objects come and go while the pages are read; every one is told once, none is left out."""
    for number in range(10):
        await admin.create(WIDGETS, widget(f"w{number}", namespace))
    history = History()

    def disturb(request: web.Request) -> None:
        if "continue=" in request.path_qs and not disturbed:
            disturbed.append(asyncio.create_task(change()))

    async def change() -> None:
        await admin.create(WIDGETS, widget("late", namespace))
        await admin.patch(WIDGETS, "w9", MERGED, namespace)
        await admin.delete(WIDGETS, "w8", namespace)

    disturbed: list[asyncio.Task[None]] = []
    between.instead = disturb  # type: ignore[assignment]
    async with Client(between.connection) as client, following(client, namespace, 3) as reflector:
        reflector.cache.subscribe(history)
        await reflector.cache.synced()
        await disturbed[0]
        expected = await truth(admin, namespace)
        await until(lambda: content(reflector.cache) == expected)
    assert between.lists() == 4
    assert Counter(history) == Counter(
        [(f"w{number}", "is", 0) for number in range(10)]
        + [("late", "is", 0), ("w9", "is", 1), ("w8", "gone", 0)]
    )


async def test_bookmarks_move_the_point_to_resume_from(admin: Client, namespace: str) -> None:
    """Whoever watches a quiet corner would otherwise resume from a version long forgotten."""
    begun = await admin.page(WIDGETS, namespace)
    # Sent about two seconds before the time of a watch is over, when there was news elsewhere.
    events = admin.watch(WIDGETS, namespace, since=begun.resource_version, seconds=8)
    received = asyncio.create_task(collect(events))
    while not received.done():
        created = await admin.create(WIDGETS, widget(f"{namespace}-elsewhere", "default"))
        await admin.delete(WIDGETS, created["metadata"]["name"], "default")
        await asyncio.sleep(0.3)
    bookmarks = await received
    assert {event.type for event in bookmarks} == {"BOOKMARK"}
    last = bookmarks[-1].object["metadata"]["resourceVersion"]
    assert int(last) > int(begun.resource_version)


async def collect(events: AsyncIterator[WatchEvent]) -> list[WatchEvent]:
    return [event async for event in events]


async def test_a_cut_connection_is_resumed_without_listing_losing_or_repeating(
    between: Between, admin: Client, namespace: str
) -> None:
    """The network breaks five times amid a stream of changes."""
    history = History()
    await admin.create(WIDGETS, widget("a", namespace))
    async with Client(between.connection) as client, following(client, namespace) as reflector:
        reflector.cache.subscribe(history)
        await reflector.cache.synced()
        for number in range(1, 51):
            await admin.patch(WIDGETS, "a", {"spec": {"round": number}}, namespace)
            if number % 10 == 0:
                between.cut()
        await until(lambda: bool(history) and history[-1] == ("a", "is", 50))
    assert history == [("a", "is", number) for number in range(51)]
    assert between.lists() == 1
    assert between.watches() >= 2


async def test_gone_is_answered_by_a_list_that_notices_deletions(
    between: Between, admin: Client, namespace: str
) -> None:
    """The server forgot our version: what was deleted meanwhile is known only by its absence."""
    for name in ("stays", "goes"):
        await admin.create(WIDGETS, widget(name, namespace))
    gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}
    refusals = [web.Response(body=orjson.dumps(gone) + b"\n", content_type="application/json")]
    history = History()
    async with Client(between.connection) as client, following(client, namespace) as reflector:
        reflector.cache.subscribe(history)
        await until(lambda: between.watches() == 1)
        between.instead = lambda r: (  # while no watch gets through, the world goes on
            web.Response(status=503) if "watch=1" in r.path_qs else None
        )
        between.cut()
        await admin.delete(WIDGETS, "goes", namespace)
        await admin.create(WIDGETS, widget("comes", namespace))
        between.instead = lambda r: refusals.pop() if refusals and "watch=1" in r.path_qs else None
        await until(lambda: ("goes", "gone", 0) in history)
        await admin.patch(WIDGETS, "stays", MERGED, namespace)
        await until(lambda: history[-1] == ("stays", "is", 1))
        assert content(reflector.cache) == await truth(admin, namespace)
    assert between.lists() == 2
    assert sorted(history) == [
        ("comes", "is", 0),
        ("goes", "gone", 0),
        ("goes", "is", 0),
        ("stays", "is", 0),
        ("stays", "is", 1),
    ]


async def test_a_refresh_amid_changes_brings_nothing_back(admin: Client, namespace: str) -> None:
    """A list is older than what the watch brings while its pages are read."""
    async with following(admin, namespace, page_size=2) as reflector:
        await reflector.cache.synced()

        async def churn() -> None:
            for number in range(40):
                await admin.create(WIDGETS, widget(f"w{number}", namespace))
                if number % 2:
                    await admin.delete(WIDGETS, f"w{number - 1}", namespace)

        async def refresh() -> None:
            while not churning.done():
                await reflector.refresh()

        churning = asyncio.create_task(churn())
        await asyncio.gather(churning, refresh(), refresh())
        expected = await truth(admin, namespace)
        await until(lambda: content(reflector.cache) == expected)
        await asyncio.sleep(0.3)
        assert content(reflector.cache) == expected


async def insist(call: Callable[[], Any]) -> None:
    """Write until the server has answered; it may have taken effect before it fell."""
    while True:
        try:
            await call()
        except (Unreachable, Overloaded):
            await asyncio.sleep(0.05)
        except (NotFound, Conflict, ApiError):
            return
        else:
            return


@pytest.mark.full
async def test_a_restarted_server_amid_five_hundred_objects_costs_nothing(
    new_control_plane: Callable[..., ControlPlane],
) -> None:
    """kill -9 while objects are created, changed and deleted: the cache ends as the server."""
    plane = new_control_plane()
    await install_widgets(plane)
    count, namespace = 500, "default"
    async with (
        Client.from_kubeconfig(plane.kubeconfig) as client,
        following(client, "", page_size=50) as reflector,
    ):
        told: dict[Key, str | None] = {}
        reflector.cache.subscribe(lambda change: told.update({change.key: version(change)}))
        await reflector.cache.synced()
        todo = iter(range(count))

        async def work() -> None:
            for number in todo:
                name = f"w{number}"
                await insist(lambda n=name: client.create(WIDGETS, widget(n, namespace)))
                await insist(lambda n=name: client.patch(WIDGETS, n, MERGED, namespace))
                if number % 3 == 0:
                    await insist(lambda n=name: client.delete(WIDGETS, n, namespace))

        async def restart() -> None:
            await until(lambda: len(reflector.cache) > 60)
            for _ in range(2):
                await asyncio.to_thread(plane.kill, "kube-apiserver")
                await asyncio.to_thread(plane.start)
                await asyncio.sleep(1)

        await asyncio.gather(restart(), *(work() for _ in range(8)))
        expected = await truth(client, namespace)
        await until(lambda: content(reflector.cache) == expected)
        # Who listens to changes ends with the same picture as who reads the cache.
        assert {key: seen for key, seen in told.items() if seen} == {
            key: obj["metadata"]["resourceVersion"] for key, obj in expected.items()
        }
        assert len(expected) >= count * 0.6


def version(change: Change) -> str | None:
    return change.object and change.object["metadata"]["resourceVersion"]
