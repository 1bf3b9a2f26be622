"""The queue: order, one hand per key, pauses that grow."""

import asyncio
from datetime import timedelta
from random import Random

import pytest

from novacron.runtime.queue import Queue
from novacron.runtime.resource import Key

pytestmark = pytest.mark.looptime

A, B = Key("default", "a"), Key("default", "b")
SECOND = timedelta(seconds=1)


async def nothing_to_take(queue: Queue) -> bool:
    """Say whether a worker would wait."""
    try:
        async with asyncio.timeout(0.001):
            await queue.take()
    except TimeoutError:
        return True
    return False


async def test_keys_come_out_in_the_order_they_went_in() -> None:
    """Nobody waits for ever behind later comers."""
    queue = Queue()
    queue.add(A)
    queue.add(B)
    assert [await queue.take(), await queue.take()] == [A, B]


async def test_a_key_added_many_times_is_handed_out_once() -> None:
    """A reconcile looks at the present state: a hundred changes are one look."""
    queue = Queue()
    for _ in range(100):
        queue.add(A)
    assert len(queue) == 1
    await queue.take()
    queue.done(A)
    assert await nothing_to_take(queue)


async def test_a_key_in_hand_is_not_handed_out_again_until_it_is_done() -> None:
    """Two reconciles of one object at once would undo each other's work."""
    queue = Queue()
    queue.add(A)
    await queue.take()
    queue.add(A)
    assert await nothing_to_take(queue)
    assert queue.working == {A}
    queue.done(A)
    assert await queue.take() == A


async def test_a_waiting_worker_gets_what_is_added() -> None:
    """Workers sleep until there is something to do."""
    queue = Queue()
    workers = [asyncio.create_task(queue.take()) for _ in range(2)]
    await asyncio.sleep(1)
    queue.add(A)
    queue.add(B)
    assert set(await asyncio.gather(*workers)) == {A, B}


async def test_a_cancelled_worker_passes_its_wake_up_on() -> None:
    """A worker that is stopped at the moment it is woken must not take the key with it."""
    queue = Queue()
    first, second = (asyncio.create_task(queue.take()) for _ in range(2))
    await asyncio.sleep(1)
    queue.add(A)
    first.cancel()
    assert await asyncio.wait_for(second, 1) == A


async def test_a_worker_cancelled_before_is_passed_over() -> None:
    """Its place in the line is empty."""
    queue = Queue()
    first, second = (asyncio.create_task(queue.take()) for _ in range(2))
    await asyncio.sleep(1)
    first.cancel()
    await asyncio.sleep(1)
    queue.add(A)
    assert await asyncio.wait_for(second, 1) == A


async def test_a_delayed_key_comes_when_it_is_due() -> None:
    """Waiting is a timer, not a sleeping worker."""
    queue = Queue()
    queue.add_after(A, 10 * SECOND)
    loop = asyncio.get_running_loop()
    begun = loop.time()
    assert await queue.take() == A
    assert loop.time() - begun == pytest.approx(10, abs=0.1)


async def test_of_two_delays_the_earlier_counts() -> None:
    """Whoever asked for an early look gets one, and there is one look for both."""
    queue = Queue()
    loop = asyncio.get_running_loop()
    begun = loop.time()
    queue.add_after(A, 10 * SECOND)
    queue.add_after(A, 2 * SECOND)
    queue.add_after(A, 5 * SECOND)
    await queue.take()
    assert loop.time() - begun == pytest.approx(2, abs=0.1)
    queue.done(A)
    await asyncio.sleep(60)
    assert await nothing_to_take(queue)


async def test_pauses_double_up_to_the_longest() -> None:
    """Something that keeps failing costs less and less."""
    queue = Queue(shortest=SECOND, longest=60 * SECOND)
    pauses = [queue.add_failed(A).total_seconds() for _ in range(2000)]
    for number, pause in enumerate(pauses[:6]):
        assert 0.75 * 2**number <= pause <= 1.25 * 2**number
    assert all(45 <= pause <= 75 for pause in pauses[6:])


async def test_pauses_differ_between_keys() -> None:
    """A thousand objects that failed together must not come back together."""
    queue = Queue(random=Random(7))
    pauses = {queue.add_failed(Key("default", str(number))) for number in range(100)}
    assert len(pauses) > 90


async def test_success_makes_the_next_pause_short_again() -> None:
    """Past trouble does not slow down a healthy object."""
    queue = Queue(shortest=SECOND)
    for _ in range(8):
        queue.add_failed(A)
    queue.forget(A)
    assert queue.add_failed(A) <= 1.25 * SECOND


async def test_a_first_pause_of_its_own_doubles_too() -> None:
    """A conflict is tried again sooner than a failure, but not for ever at that pace."""
    queue = Queue()
    pauses = [queue.add_failed(A, timedelta(milliseconds=20)) for _ in range(8)]
    assert pauses[0] <= timedelta(milliseconds=25)
    assert pauses[-1] >= timedelta(milliseconds=20) * 2**7 * 0.75


async def test_a_closed_queue_has_no_timers() -> None:
    """A stopped process has nothing that wakes up later."""
    queue = Queue()
    queue.add_after(A, SECOND)
    queue.close()
    await asyncio.sleep(60)
    assert len(queue) == 0


async def test_the_time_a_key_waited_is_told() -> None:
    """Queue latency is the first thing to look at when an operator is slow."""
    waited: list[float] = []
    queue = Queue(on_wait=waited.append)
    queue.add(A)
    await asyncio.sleep(3)
    await queue.take()
    assert waited == [pytest.approx(3, abs=0.1)]
