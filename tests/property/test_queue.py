"""The queue's promises under any order of additions, delays, failures and working times."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import NamedTuple

import looptime
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from novacron.runtime.queue import Queue
from novacron.runtime.resource import Key

KEYS = [Key("default", name) for name in "abc"]
WORKERS = 3


class Wish(NamedTuple):
    """Somebody asks at some time for a key, at once or after a delay (in milliseconds)."""

    at: int
    key: Key
    after: int | None


WISHES = st.lists(
    st.builds(
        Wish,
        st.integers(0, 500),
        st.sampled_from(KEYS),
        st.none() | st.integers(0, 300),
    ),
    max_size=25,
)
# How long the n-th piece of work takes, and whether it fails.
WORK = st.lists(st.tuples(st.integers(0, 120), st.booleans()), min_size=1, max_size=20)


@dataclass
class World:
    """Workers at one queue, and a record of what they did."""

    queue: Queue
    work: list[tuple[int, bool]]
    begun: list[tuple[float, Key]] = field(default_factory=list)
    in_hand: Counter[Key] = field(default_factory=Counter)
    most_in_hand: int = 0
    failures: int = 0

    async def worker(self) -> None:
        while True:
            key = await self.queue.take()
            number = len(self.begun)
            self.begun.append((asyncio.get_running_loop().time(), key))
            self.in_hand[key] += 1
            self.most_in_hand = max(self.most_in_hand, self.in_hand[key])
            duration, fails = self.work[number % len(self.work)]
            await asyncio.sleep(duration / 1000)
            # Everything succeeds in the end, so that every run does.
            if fails and number < len(self.work):
                self.failures += 1
                self.queue.add_failed(key)
            else:
                self.queue.forget(key)
            self.in_hand[key] -= 1
            self.queue.done(key)


async def play(wishes: list[Wish], work: list[tuple[int, bool]]) -> World:
    """Let all wishes come and all work end."""
    world = World(Queue(shortest=timedelta(milliseconds=50), random=Random(1)), work)
    workers = [asyncio.create_task(world.worker()) for _ in range(WORKERS)]
    loop = asyncio.get_running_loop()
    for wish in wishes:
        loop.call_at(wish.at / 1000, grant, world.queue, wish)
    await asyncio.sleep(100_000)
    for worker in workers:
        worker.cancel()
    await asyncio.gather(*workers, return_exceptions=True)
    return world


def grant(queue: Queue, wish: Wish) -> None:
    if wish.after is None:
        queue.add(wish.key)
    else:
        queue.add_after(wish.key, timedelta(milliseconds=wish.after))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(WISHES, WORK)
def test_no_key_is_lost_doubled_or_in_two_hands(
    wishes: list[Wish], work: list[tuple[int, bool]]
) -> None:
    """The three promises everything above the queue relies on."""
    with asyncio.Runner(loop_factory=lambda: looptime.new_event_loop(start=0)) as runner:
        world = runner.run(play(wishes, work))
    assert world.most_in_hand <= 1
    assert len(world.queue) == 0
    assert not world.queue.working
    assert len(world.begun) <= len(wishes) + world.failures
    for wish in wishes:
        due = (wish.at + (wish.after or 0)) / 1000
        # A delay may be met early by somebody's earlier wish that was due after this one came.
        earliest = due if wish.after is None else wish.at / 1000
        assert any(key == wish.key and at >= earliest - 1e-6 for at, key in world.begun)
