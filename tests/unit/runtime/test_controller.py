"""The controller: who is looked at, what failures lead to, how it stops."""

import asyncio
import contextlib
import itertools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from novacron.runtime.cache import Cache
from novacron.runtime.controller import RECONCILE, Controller
from novacron.runtime.errors import Conflict, LeaseLost, Overloaded
from novacron.runtime.resource import Key, Object, Resource

pytestmark = pytest.mark.looptime

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
A, B = Key("default", "a"), Key("default", "b")

Reconcile = Callable[[Key], Awaitable[timedelta | None]]


def widget(key: Key, version: int) -> Object:
    metadata = {"namespace": key.namespace, "name": key.name, "resourceVersion": str(version)}
    return {"metadata": metadata}


class Results(list[str]):
    """How the reconciles ended."""

    def reconciled(self, controller: str, result: str, seconds: float) -> None:
        assert controller == "test"
        assert seconds >= 0
        self.append(result)


def controller(reconcile: Reconcile, owns: Callable[[Key], bool] = lambda _: True) -> Controller:
    return Controller("test", reconcile, owns, workers=4, observer=Results())


@asynccontextmanager
async def running(subject: Controller) -> AsyncIterator["asyncio.Task[None]"]:
    """Run a controller until the block ends."""
    task = asyncio.create_task(subject.run())
    try:
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


class Looks(list[tuple[float, Key]]):
    """A reconcile function that records when it was called, and fails as often as told."""

    def __init__(self, *failures: BaseException) -> None:
        super().__init__()
        self.failures = list(failures)

    async def __call__(self, key: Key) -> timedelta | None:
        self.append((asyncio.get_running_loop().time(), key))
        if self.failures:
            raise self.failures.pop(0)
        return None

    def pauses(self) -> list[float]:
        times = [at for at, _ in self]
        return [later - earlier for earlier, later in itertools.pairwise(times)]


async def test_every_change_is_looked_at_except_its_own_writes() -> None:
    """The writer knows what it wrote; everybody else must hear of it."""
    looks, others = Looks(), Looks()
    writer = controller(looks)
    other = Controller("other", others, lambda _: True)
    cache = Cache(WIDGETS)
    writer.follow(cache)
    other.follow(cache)
    async with running(writer), running(other):
        cache.seen(widget(A, 1))
        await asyncio.sleep(1)
        cache.remember(widget(A, 2), "test")
        cache.seen(widget(A, 2))
        await asyncio.sleep(1)
        assert [len(looks), len(others)] == [1, 2]
        cache.seen(widget(A, 3))
        await asyncio.sleep(1)
        assert [len(looks), len(others)] == [2, 3]


async def test_keys_of_other_processes_are_left_alone() -> None:
    """Shards share the keys; a key that moved away while it waited is not looked at either."""
    looks = Looks()
    mine = {A}
    subject = controller(looks, lambda key: key in mine)
    subject.add_all([A, B])
    mine.clear()
    async with running(subject):
        await asyncio.sleep(1)
    assert looks == []


async def test_what_asks_for_another_look_gets_it_then() -> None:
    """Waiting for a machine to boot is a timer, not a busy worker."""
    looks = Looks()

    async def reconcile(key: Key) -> timedelta | None:
        await looks(key)
        return timedelta(seconds=30) if len(looks) == 1 else None

    subject = controller(reconcile)
    subject.queue.add(A)
    async with running(subject):
        await asyncio.sleep(100)
    assert looks.pauses() == [pytest.approx(30, abs=0.1)]
    assert subject.observer == ["requeue", "success"]


async def test_failures_come_back_later_and_later(caplog: pytest.LogCaptureFixture) -> None:
    """A broken object must not keep a worker busy."""
    looks = Looks(RuntimeError("first"), Overloaded("second"), RuntimeError("third"))
    subject = controller(looks)
    subject.queue.add(A)
    async with running(subject):
        await asyncio.sleep(100)
    first, second, third = looks.pauses()
    assert 0.15 <= first <= 0.26
    assert 0.3 <= second <= 0.51
    assert 0.6 <= third <= 1.01
    assert subject.observer == ["error", "error", "error", "success"]
    assert [record.levelno for record in caplog.records] == [
        logging.ERROR,
        logging.WARNING,
        logging.ERROR,
    ]


async def test_a_conflict_is_tried_again_soon_but_not_for_ever_at_that_pace() -> None:
    """While a watch is down the cache stays stale, and so does every retry."""
    looks = Looks(*[Conflict("changed")] * 10)
    subject = controller(looks)
    subject.queue.add(A)
    async with running(subject):
        await asyncio.sleep(1000)
    pauses = looks.pauses()
    assert pauses[0] <= 0.03
    assert pauses[9] >= 0.02 * 2**9 * 0.75
    assert subject.observer == ["conflict"] * 10 + ["success"]


async def test_a_lost_lease_is_not_tried_again() -> None:
    """The process is about to end; its keys are another's."""
    looks = Looks(LeaseLost("too late"))
    subject = controller(looks)
    subject.queue.add(A)
    async with running(subject):
        await asyncio.sleep(1000)
    assert len(looks) == 1


async def test_something_cancelled_within_a_reconcile_costs_no_worker() -> None:
    """A future that a driver cancelled is a failure like any other; nobody asked us to stop."""
    looks = Looks(*[asyncio.CancelledError()] * 20)
    subject = controller(looks)
    subject.queue.add(A)
    async with running(subject) as task:
        await asyncio.sleep(10_000)
        assert not task.done()
    assert len(looks) == 21


async def test_a_reconcile_in_hand_is_finished_and_nothing_new_begun() -> None:
    """A graceful stop: half a reconcile would leave work for a repair."""
    log: list[str] = []

    async def reconcile(key: Key) -> timedelta | None:
        log.append(f"begin {key.name}")
        await asyncio.sleep(5)
        log.append(f"end {key.name}")
        return timedelta(seconds=1)

    subject = Controller("test", reconcile, lambda _: True, workers=1)
    subject.queue.add(A)
    subject.queue.add(B)
    task = asyncio.create_task(subject.run())
    await asyncio.sleep(1)
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=10)
    assert done
    await asyncio.sleep(100)
    assert log == ["begin a", "end a"]


def test_a_reconcile_that_never_ends_does_not_hold_up_the_process() -> None:
    """Whoever stops a controller sets a deadline; past it, the loop's end cancels what is left."""
    ended: list[str] = []

    async def reconcile(_: Key) -> timedelta | None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")
        return None

    async def process() -> None:
        subject = Controller("test", reconcile, lambda _: True)
        subject.queue.add(A)
        task = asyncio.create_task(subject.run())
        await asyncio.sleep(0.05)
        task.cancel()
        _, pending = await asyncio.wait({task}, timeout=0.1)
        assert pending

    asyncio.run(process())
    assert ended == ["cancelled"]


async def test_idle_waits_for_what_is_in_hand() -> None:
    """A shard gives keys away only when nobody works on them any more."""
    mine = {A, B}

    async def reconcile(key: Key) -> timedelta | None:
        await asyncio.sleep(5 if key == A else 50)
        return None

    subject = controller(reconcile, lambda key: key in mine)
    subject.add_all([A, B])
    loop = asyncio.get_running_loop()
    begun = loop.time()
    async with running(subject):
        await asyncio.sleep(1)
        mine.discard(A)
        await subject.idle(lambda key: key == A)
        assert loop.time() - begun == pytest.approx(5, abs=0.1)


async def test_log_lines_can_tell_what_is_reconciled() -> None:
    """Sixteen workers write into one log."""
    seen: list[tuple[str, Key, int]] = []

    async def reconcile(key: Key) -> timedelta | None:
        await asyncio.sleep(1)
        now = RECONCILE.get()
        assert now is not None
        assert now.key == key
        seen.append((now.controller, now.key, now.number))
        return None

    subject = controller(reconcile)
    subject.add_all([A, B])
    async with running(subject):
        await asyncio.sleep(10)
    assert seen == [("test", A, 1), ("test", B, 2)]
    assert RECONCILE.get() is None
