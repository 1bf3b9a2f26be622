"""The heartbeat: when the fence is open, when it closes, and what is never undone."""

import re
from collections.abc import Iterator
from datetime import timedelta

import pytest

from lease_world import Store, World
from novacron.runtime.errors import AlreadyExists, LeaseLost, Unreachable
from novacron.runtime.leases import Lease, LeaseTiming
from novacron.runtime.membership import Membership, unique_identity

DEADLINE = LeaseTiming().renew_deadline.total_seconds()


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.close()


class Direct:
    """The store, no network: a write takes ``during`` seconds, ``silent`` answers are lost."""

    group = "test"

    def __init__(self) -> None:
        self.store = Store()
        self.now = 100.0
        self.during = 0.0
        self.silent = 0

    async def list(self) -> list[Lease]:
        return self.store.list()

    async def get(self, name: str) -> Lease:
        return self.store.get(name)

    async def create(self, lease: Lease) -> Lease:
        return self._answer(self.store.create(lease))

    async def replace(self, lease: Lease) -> Lease:
        return self._answer(self.store.replace(lease))

    async def delete(self, lease: Lease) -> None:
        self.store.delete(lease)

    def _answer(self, lease: Lease) -> Lease:
        self.now += self.during
        if self.silent:
            self.silent -= 1
            raise Unreachable("the answer was lost")
        return lease


def member(leases: Direct, left: list[str] | None = None) -> Membership:
    return Membership(
        leases,
        identity="me",
        clock=lambda: leases.now,
        on_lost=lambda: left.append("left") if left is not None else None,
    )


async def test_nothing_may_be_written_before_joining() -> None:
    """A process that nobody can see must not act; that is no reason to leave."""
    left: list[str] = []
    with pytest.raises(LeaseLost):
        member(Direct(), left).seconds_left()
    assert not left


async def test_the_fence_counts_from_the_beginning_of_a_renewal() -> None:
    """Others may have seen the renewal the moment it was sent, whatever its answer took."""
    leases = Direct()
    me = member(leases)
    await me.join()
    leases.during = 1.5
    assert await me.renew()
    assert me.seconds_left() == pytest.approx(DEADLINE - 1.5)


async def test_past_the_deadline_the_process_leaves_and_the_fence_stays_closed() -> None:
    """Whoever may have been replaced can never be sure again."""
    leases, left = Direct(), list[str]()
    me = member(leases, left)
    await me.join()
    leases.now += DEADLINE
    with pytest.raises(LeaseLost):
        me.seconds_left()
    leases.now -= DEADLINE
    with pytest.raises(LeaseLost):
        me.seconds_left()
    assert left == ["left"]


async def test_a_renewal_answered_past_the_old_deadline_comes_too_late() -> None:
    """A process stopped amid a renewal wakes up with a success that others did not wait for."""
    leases, left = Direct(), list[str]()
    me = member(leases, left)
    await me.join()
    leases.now += DEADLINE - 0.1
    leases.during = 0.2
    with pytest.raises(LeaseLost):
        await me.renew()
    assert left == ["left"]


async def test_a_renewal_whose_answer_was_lost_does_not_stop_the_next() -> None:
    """It changed the resource version that the next one would be compared with."""
    leases = Direct()
    me = member(leases)
    await me.join()
    leases.silent = 1
    assert not await me.renew()
    leases.now += 1
    assert await me.renew()
    assert me.seconds_left() == DEADLINE


async def test_a_deleted_heartbeat_is_a_lost_one() -> None:
    """Somebody said that this process is dead; it must not argue."""
    leases, left = Direct(), list[str]()
    me = member(leases, left)
    await me.join()
    leases.store.objects.clear()
    with pytest.raises(LeaseLost, match="deleted"):
        await me.renew()
    assert left == ["left"]


async def test_a_heartbeat_in_other_hands_is_a_lost_one() -> None:
    """The object is ours by its holder, not by its name."""
    leases, left = Direct(), list[str]()
    me = member(leases, left)
    await me.join()
    lease = leases.store.get("test-member-me")
    leases.store.replace(lease.taken("another", me.wall()))
    with pytest.raises(LeaseLost, match="another"):
        await me.renew()
    assert left == ["left"]


async def test_what_others_wrote_on_a_heartbeat_stays() -> None:
    """People label and annotate objects; a renewal is no reason to lose that."""
    leases = Direct()
    me = member(leases)
    me.notes["ours"] = "1"
    await me.join()
    leases.store.objects["test-member-me"]["metadata"]["annotations"]["theirs"] = "2"
    leases.store.replace(leases.store.get("test-member-me"))
    assert await me.renew()
    assert leases.store.get("test-member-me").notes == {"ours": "1", "theirs": "2"}


async def test_two_processes_of_one_name_are_refused() -> None:
    """They would renew each other's heartbeat and hold each other's claims."""
    leases = Direct()
    await member(leases).join()
    with pytest.raises(AlreadyExists):
        await member(leases).join()


async def test_joining_survives_a_lost_answer() -> None:
    """The heartbeat that is there already is then our own."""
    leases = Direct()
    leases.silent = 1
    me = Membership(
        leases,
        identity="me",
        timing=LeaseTiming(retry=timedelta(milliseconds=1)),
        clock=lambda: leases.now,
    )
    await me.join()
    assert me.seconds_left() == DEADLINE


async def test_after_leaving_nothing_is_written() -> None:
    """What was let go may be another's at once; leaving in good order is no loss, though."""
    leases, left = Direct(), list[str]()
    me = member(leases, left)
    await me.join()
    await me.leave()
    with pytest.raises(LeaseLost):
        me.seconds_left()
    assert not leases.store.objects
    assert not left


async def test_long_dead_members_are_swept_and_holders_are_not() -> None:
    """Their leases would pile up with every restart; a holder's still says what is free when."""
    leases = Direct()
    me = member(leases)
    await me.join()
    for dead in ("dead", "holder"):
        leases.store.create(Lease.new(f"test-member-{dead}", me.timing).taken(dead, me.wall()))
    leases.store.create(Lease.new("test-leader", me.timing).taken("holder", me.wall()))
    await me.sweep(await me.look())
    assert len(leases.store.objects) == 4
    leases.now += 10 * me.timing.duration.total_seconds()
    await me.sweep(await me.look())
    assert sorted(leases.store.objects) == ["test-leader", "test-member-holder", "test-member-me"]


def test_a_process_without_an_api_server_leaves_at_the_deadline(world: World) -> None:
    """Nobody has to ask the fence for that: the heartbeat itself looks at the clock."""
    process = world.start()
    world.live(4)
    world.cut_off = {process.name}
    world.advance(0.5)
    renewed = process.membership.seconds_left()
    while process.running:
        world.advance(0.05)
        renewed -= 0.05
    assert renewed == pytest.approx(0, abs=0.06)


def test_an_api_server_away_for_less_than_the_deadline_costs_nothing(world: World) -> None:
    """Restarts of API servers are ordinary; each may fall between two renewals."""
    process = world.start()
    world.live(4)
    world.cut_off = {process.name}
    for _ in range(18):
        world.advance(0.2)
    world.cut_off = set()
    world.live(20)
    assert process.usable() == {"leader"}


def test_identities_are_unique_and_fit_into_object_names() -> None:
    """A restarted process in the same pod is another process."""
    one, two = unique_identity(), unique_identity()
    assert one != two
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", one)
