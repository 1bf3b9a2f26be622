"""Claims among several processes: taken, shared, handed over, lost."""

from collections.abc import Iterator

import pytest

from lease_world import Process, World
from novacron.runtime.resource import Key

KEYS = [Key("default", f"vm-{number}") for number in range(40)]


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.close()


def shards_of(process: Process) -> set[str]:
    return set(process.usable() - {"leader"})


def test_one_leads_and_the_first_to_come_keeps_it(world: World) -> None:
    """Leadership that moved without need would cost a look at the whole world."""
    first = world.start()
    world.live(1)
    world.start()
    world.live(30)
    assert world.users("leader") == [first.name]


def test_shards_are_shared_and_move_when_members_come_and_go(world: World) -> None:
    """Each key has exactly one owner whoever is there."""
    first = world.start(4)
    world.live(1)
    assert len(shards_of(first)) == 4
    second, third = world.start(4), world.start(4)
    world.live(6)
    assert sorted(len(shards_of(p)) for p in (first, second, third)) == [1, 1, 2]
    world.kill(second)
    world.live(12)
    assert sorted(len(shards_of(p)) for p in (first, third)) == [2, 2]
    for key in KEYS:
        assert [p.claims.owns(key) for p in (first, third)].count(True) == 1


def test_a_killed_leader_is_replaced_within_duration_and_retry(world: World) -> None:
    """11 s with the defaults, whenever in its rhythm it dies, and never before the fence closed."""
    delays = []
    for offset in (0.0, 0.5, 1.0, 1.5):
        leader, other = world.start(), world.start()
        world.live(6 + offset)
        assert world.users("leader") == [leader.name]
        world.kill(leader)
        killed = world.loop.now
        while not world.users("leader"):
            world.live(0.1, 0.1)
        delays.append(world.loop.now - killed)
        other.claims.stop()
        world.live(3)
    assert max(delays) <= 11.3
    assert min(delays) >= 6.0


def test_a_process_that_stops_hands_over_at_once(world: World) -> None:
    """Nobody has to wait for a lease to expire that was given back."""
    first, second = world.start(4), world.start(4)
    world.live(6)
    first.claims.stop()
    world.live(2.5)
    assert first.task.done()
    assert not first.lost
    assert second.usable() == {"leader", "shard-0", "shard-1", "shard-2", "shard-3"}
    assert "test-member-p0" not in world.store.objects


def test_a_claim_counts_between_its_hand_overs_only(world: World) -> None:
    """Caches are fresh before the first act, and the last act has ended before another's."""
    first = world.start(2, instant=False)
    for _ in range(8):
        world.advance(0.25)
        world.serve()
    assert {(kind, claim) for kind, claim, _ in first.handovers} == {
        ("gained", "leader"),
        ("gained", "shard-0"),
        ("gained", "shard-1"),
    }
    assert not first.usable()
    world.live(0.25)
    assert len(first.usable()) == 3
    second = world.start(2)
    for _ in range(20):
        world.advance(0.25)
        world.serve()
    kind, claim, done = first.handovers[-1]
    assert kind == "drain"
    assert claim not in first.usable()
    assert not shards_of(second)
    done.set_result(None)
    for _ in range(10):
        world.advance(0.25)
        world.serve()
    assert shards_of(second) == {claim}


def test_who_leaves_is_given_nothing_while_its_work_ends(world: World) -> None:
    """A freed shard would otherwise wait for somebody who will never take it."""
    first, second = world.start(4, instant=False), world.start(4)
    world.live(6)
    first.claims.stop()
    for _ in range(20):
        world.advance(0.25)
        world.serve()
    drains = [done for kind, _, done in first.handovers if kind == "drain"]
    assert len(drains) == 3  # two shards and leadership
    drains[0].set_result(None)
    for _ in range(12):
        world.advance(0.25)
        world.serve()
    assert first.running
    assert len(second.usable()) == 3


def test_a_take_whose_answer_was_lost_is_found_out(world: World) -> None:
    """The claim names us: nobody else can ever take it while we live."""
    process = world.start()
    while "test-leader" not in world.store.objects:
        call = world.calls[0]
        call.land()
        if "test-leader" in world.store.objects:
            world.calls.remove(call)  # it took effect, and the answer never comes
        else:
            world.answer(call)
    assert not process.usable()
    world.live(6)
    assert process.usable() == {"leader"}


def test_a_claim_in_other_hands_ends_the_process(world: World) -> None:
    """Somebody forced it: whoever it was acts already."""
    process = world.start()
    world.live(3)
    lease = world.store.get("test-leader")
    world.store.replace(lease.taken("somebody", process.membership.wall()))
    world.live(3)
    assert process.lost


def test_processes_that_divide_differently_never_act_side_by_side(world: World) -> None:
    """During an update that changes the number of shards a key must not have two owners."""
    old = world.start(2)
    world.live(3)
    new = world.start(5)
    world.live(20)
    assert len(old.usable()) == 3
    assert not new.usable()
    old.claims.stop()
    world.live(3)
    assert len(new.usable()) == 6


def test_a_hand_over_that_fails_ends_the_run(world: World) -> None:
    """A claim that is ours but never begins would leave its keys without an owner for good."""
    process = world.start()

    async def broken(_claim: str) -> None:
        raise RuntimeError("no cache")

    process.claims.gained = broken
    world.live(3)
    with pytest.raises(ExceptionGroup):
        process.task.result()


def test_restarted_processes_leave_no_leases_behind(world: World) -> None:
    """The leader removes the heartbeats of those who died long ago."""
    world.start()
    for _ in range(3):
        process = world.start()
        world.live(1)
        world.kill(process)
    world.live(100)
    assert sorted(world.store.objects) == ["test-leader", "test-member-p0"]
