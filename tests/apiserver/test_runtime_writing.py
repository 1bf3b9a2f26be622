"""Writing to a real API server: conflicts, own writes, deletions, the fence, a graceful stop."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

import pytest
from aiohttp import web

from loopback import Between, until
from novacron.localcluster.controlplane import ControlPlane
from novacron.runtime.cache import Cache
from novacron.runtime.client import Client
from novacron.runtime.connection import from_kubeconfig
from novacron.runtime.controller import Controller
from novacron.runtime.errors import Conflict, LeaseLost
from novacron.runtime.reflector import Reflector
from novacron.runtime.resource import Key, Object
from novacron.runtime.writer import Writer
from widgets import WIDGETS, install_widgets, widget


@pytest.fixture
async def admin(control_plane: ControlPlane) -> AsyncIterator[Client]:
    await install_widgets(control_plane)
    async with Client.from_kubeconfig(control_plane.kubeconfig) as client:
        yield client


@asynccontextmanager
async def running(*coroutines: Awaitable[None]) -> AsyncIterator[list["asyncio.Future[None]"]]:
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def cached(client: Client, namespace: str) -> AsyncIterator[Cache]:
    """Follow one namespace and wait until everything in it is known."""
    cache = Cache(WIDGETS)
    async with running(Reflector(client, cache, namespace).run()):
        await cache.synced()
        yield cache


class Counting:
    """A controller that raises a number in the status up to a goal, one write at a time."""

    def __init__(self, client: Client, cache: Cache, name: str, goal: int = 1) -> None:
        self.writer = Writer(client, cache, name)
        self.cache = cache
        self.name = name
        self.goal = goal
        self.looks = 0
        self.conflicts = 0
        self.controller = Controller(name, self.reconcile, lambda _: True, workers=4)
        self.controller.follow(cache)

    async def reconcile(self, key: Key) -> timedelta | None:
        self.looks += 1
        obj = self.cache.get(key)
        if obj is None:
            return None
        status = obj.get("status") or {}
        if status.get(self.name, 0) >= self.goal:
            return None
        total = status.get("total", 0) + 1
        mine = status.get(self.name, 0) + 1
        try:
            await self.writer.status(obj, status | {self.name: mine, "total": total})
        except Conflict:
            self.conflicts += 1
            raise
        return timedelta(0)


async def test_two_controllers_that_write_the_same_object_both_get_through(
    admin: Client, control_plane: ControlPlane, namespace: str
) -> None:
    """Each counts to thirty in its own field and in a common one: no write undoes another."""
    await admin.create(WIDGETS, widget("a", namespace))
    async with AsyncExitStack() as stack:
        counters = []
        for name in ("red", "blue"):  # two processes: each has its own client and cache
            client = await stack.enter_async_context(
                Client.from_kubeconfig(control_plane.kubeconfig)
            )
            cache = await stack.enter_async_context(cached(client, namespace))
            counters.append(Counting(client, cache, name, goal=30))
        async with running(*(counter.controller.run() for counter in counters)):
            goal = {"red": 30, "blue": 30, "total": 60}
            await until(
                lambda: all(
                    (counter.cache.get(Key(namespace, "a")) or {}).get("status") == goal
                    for counter in counters
                )
            )
        assert sum(counter.conflicts for counter in counters) > 0
    assert (await admin.get(WIDGETS, "a", namespace))["status"] == goal


async def test_an_own_write_is_news_for_others_only(admin: Client, namespace: str) -> None:
    """One look and one write per object; the other controller hears of every write."""
    async with cached(admin, namespace) as cache:
        writer, listener = Counting(admin, cache, "writer"), Counting(admin, cache, "other", 0)
        async with running(writer.controller.run(), listener.controller.run()):
            for number in range(20):
                await admin.create(WIDGETS, widget(f"w{number}", namespace))
                await until(lambda count=number + 1: listener.looks == 2 * count)
            # The second look is the one it asked for itself; a third would be for its own echo.
            await asyncio.sleep(0.3)
            assert writer.looks <= 20 * 2
            assert listener.looks == 20 * 2


async def test_an_echo_that_overtakes_the_answer_does_no_harm(
    admin: Client, control_plane: ControlPlane, namespace: str
) -> None:
    """The watch brings the write before its answer is here: the cache never goes back."""
    await admin.create(WIDGETS, widget("a", namespace))
    key = Key(namespace, "a")
    proxy = Between(from_kubeconfig(control_plane.kubeconfig))
    async with (
        proxy.serving(),
        Client(proxy.connection) as client,
        cached(client, namespace) as cache,
    ):
        seen: list[int] = []
        cache.subscribe(lambda change: seen.append(rounds(change.object)))

        written = [0]

        async def wait_for_echo(_: web.Request) -> None:
            await until(lambda: rounds(cache.get(key)) == written[-1])

        proxy.before_answer = wait_for_echo
        writer = Writer(client, cache, "writer")
        for number in range(1, 6):
            obj = cache.get(key)
            assert obj is not None
            written.append(number)
            await writer.status(obj, {"round": number})
        assert seen == [0, 1, 2, 3, 4, 5]


async def test_an_answer_that_overtakes_the_echo_does_no_harm(
    admin: Client, control_plane: ControlPlane, namespace: str
) -> None:
    """The usual order, with the watch held back for a long time."""
    await admin.create(WIDGETS, widget("a", namespace))
    key = Key(namespace, "a")
    proxy = Between(from_kubeconfig(control_plane.kubeconfig))
    answered = asyncio.Event()

    async def wait_for_answers(_: bytes) -> None:
        await answered.wait()

    async with (
        proxy.serving(),
        Client(proxy.connection) as client,
        cached(client, namespace) as cache,
    ):
        seen: list[int] = []
        cache.subscribe(lambda change: seen.append(rounds(change.object)))
        proxy.before_line = wait_for_answers
        writer = Writer(client, cache, "writer")
        for number in range(1, 6):
            obj = cache.get(key)
            assert obj is not None
            await writer.status(obj, {"round": number})
        answered.set()
        await admin.create(WIDGETS, widget("last", namespace))
        await until(lambda: len(cache) == 2)
        assert seen == [0, 5, 0], "told when the watch has it, and old news are none"


async def test_an_answer_after_the_deletion_brings_nothing_back(
    admin: Client, control_plane: ControlPlane, namespace: str
) -> None:
    """Written, deleted by somebody else, and only then is the write answered."""
    await admin.create(WIDGETS, widget("a", namespace))
    key = Key(namespace, "a")
    proxy = Between(from_kubeconfig(control_plane.kubeconfig))
    async with (
        proxy.serving(),
        Client(proxy.connection) as client,
        cached(client, namespace) as cache,
    ):

        async def deleted_meanwhile(_: web.Request) -> None:
            await admin.delete(WIDGETS, "a", namespace)
            await until(lambda: cache.get(key) is None)

        proxy.before_answer = deleted_meanwhile
        obj = cache.get(key)
        assert obj is not None
        await Writer(client, cache, "writer").status(obj, {"round": 1})
        assert cache.get(key) is None


def rounds(obj: Object | None) -> int:
    status = (obj or {}).get("status") or {}
    return int(status.get("round", 0))


async def test_a_write_on_something_stale_is_a_conflict(admin: Client, namespace: str) -> None:
    """The version is a precondition of every kind of write; without one the last writer wins."""
    obj = await admin.create(WIDGETS, widget("a", namespace))
    await admin.patch(WIDGETS, "a", {"spec": {"n": 1}}, namespace)
    stale = {"metadata": {"resourceVersion": obj["metadata"]["resourceVersion"]}}
    with pytest.raises(Conflict):
        await admin.patch(WIDGETS, "a", stale | {"spec": {"n": 2}}, namespace)
    with pytest.raises(Conflict):
        await admin.patch(WIDGETS, "a", stale | {"status": {}}, namespace, subresource="status")
    with pytest.raises(Conflict):
        await admin.replace(WIDGETS, obj)
    with pytest.raises(Conflict):
        await admin.delete(WIDGETS, "a", namespace, uid="00000000-0000-0000-0000-000000000000")
    await admin.delete(WIDGETS, "a", namespace, uid=obj["metadata"]["uid"])


class Lease:
    """A fence that falls when told."""

    held = True

    def seconds_left(self) -> float:
        if not self.held:
            raise LeaseLost("taken by another")
        return 10.0


async def test_a_lost_lease_stops_the_writes_of_a_controller(
    admin: Client, control_plane: ControlPlane, namespace: str
) -> None:
    """From one moment to the next: it still sees everything and changes nothing."""
    lease = Lease()
    async with (
        Client(from_kubeconfig(control_plane.kubeconfig), fence=lease) as client,
        cached(client, namespace) as cache,
    ):
        counter = Counting(client, cache, "c")
        async with running(counter.controller.run()):
            await admin.create(WIDGETS, widget("before", namespace))
            await until(lambda: written(cache, namespace, "before"))
            lease.held = False
            await admin.create(WIDGETS, widget("after", namespace))
            await until(lambda: cache.get(Key(namespace, "after")) is not None)
            await asyncio.sleep(0.5)
    assert "status" not in await admin.get(WIDGETS, "after", namespace)


def written(cache: Cache, namespace: str, name: str) -> bool:
    return "status" in (cache.get(Key(namespace, name)) or {})


async def test_a_graceful_stop_finishes_the_writes_in_hand_and_begins_none(
    admin: Client, control_plane: ControlPlane, namespace: str
) -> None:
    """Stopped while four of many are being written: those four are, the rest waits for the next."""
    for number in range(20):
        await admin.create(WIDGETS, widget(f"w{number}", namespace))
    proxy = Between(from_kubeconfig(control_plane.kubeconfig))
    release = asyncio.Event()

    async def hold(_: web.Request) -> None:
        await release.wait()

    proxy.before_answer = hold
    async with (
        proxy.serving(),
        Client(proxy.connection) as client,
        cached(client, namespace) as cache,
    ):
        counter = Counting(client, cache, "c")
        stopping = asyncio.create_task(counter.controller.run())
        await until(lambda: counter.looks == 4)
        stopping.cancel()
        await asyncio.sleep(0.2)
        assert not stopping.done()
        release.set()
        done, _ = await asyncio.wait({stopping}, timeout=30)
        assert done
        await asyncio.sleep(0.3)
    with contextlib.suppress(asyncio.CancelledError):
        stopping.result()
    assert counter.looks == 4
    objects = await admin.list(WIDGETS, namespace)
    assert sum("status" in obj for obj in objects) == 4


async def test_a_stop_ends_within_its_deadline_whatever_the_server_does(
    admin: Client, control_plane: ControlPlane, namespace: str
) -> None:
    """The answer never comes: past the deadline the process goes on without it."""
    await admin.create(WIDGETS, widget("a", namespace))
    proxy = Between(from_kubeconfig(control_plane.kubeconfig))

    async def never(_: web.Request) -> None:
        await asyncio.Event().wait()

    proxy.before_answer = never
    async with (
        proxy.serving(),
        Client(proxy.connection) as client,
        cached(client, namespace) as cache,
    ):
        counter = Counting(client, cache, "c")
        stopping = asyncio.create_task(counter.controller.run())
        await until(lambda: counter.looks == 1)
        stopping.cancel()
        _, pending = await asyncio.wait({stopping}, timeout=0.5)
        assert pending == {stopping}
        proxy.cut()  # what the end of the process does
        done, _ = await asyncio.wait({stopping}, timeout=30)
        assert done
