"""Shards: the same answer in every process, fair, and moving as little as possible."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from novacron.runtime.resource import Key
from novacron.runtime.shards import assign, claim_for, claim_names

MEMBERS = st.sets(st.sampled_from("abcdef"), min_size=1)
SHARDS = st.integers(min_value=2, max_value=12)


def test_a_key_falls_into_the_same_shard_in_every_process_and_version() -> None:
    """Two releases side by side during an update must agree; so these values never change."""
    keys = [Key("default", "vm-1"), Key("default", "vm-2"), Key("", "host-1"), Key("a", "b")]
    assert [claim_for(key, 8) for key in keys] == ["shard-3", "shard-6", "shard-3", "shard-0"]


def test_namespace_and_name_are_kept_apart() -> None:
    """A cluster-scoped object and one in a namespace are different objects."""
    assert claim_for(Key("", "host-1"), 1000) != claim_for(Key("host-1", ""), 1000)


@pytest.mark.parametrize("shards", [2, 3, 7, 16])
def test_numbered_names_spread_evenly(shards: int) -> None:
    """People number their machines; a weak hash would put them all into a few shards."""
    keys = [Key("default", f"vm-{number:04}") for number in range(4000)]
    sizes = Counter(claim_for(key, shards) for key in keys)
    assert len(sizes) == shards
    assert max(sizes.values()) < 1.3 * 4000 / shards


def test_one_shard_is_the_leaders() -> None:
    """Then there is nothing to divide, and one lease is enough."""
    assert claim_names(1) == ("leader",)
    assert claim_for(Key("default", "vm"), 1) == "leader"
    assert claim_names(2) == ("leader", "shard-0", "shard-1")
    with pytest.raises(ValueError, match="at least one"):
        claim_names(0)


@given(MEMBERS, SHARDS, st.data())
def test_shares_are_fair_and_nothing_moves_without_need(
    members: set[str], shards: int, data: st.DataObject
) -> None:
    """Every move costs a drain and a look at the world; an idle member costs more."""
    names = claim_names(shards)[1:]
    holder = st.sampled_from([None, *sorted(members)])
    now = {name: data.draw(holder) for name in names}
    plan = assign(now, members)
    moved = {name for name in names if now[name] and plan.get(name) != now[name]}
    share, odd = divmod(shards, len(members))
    counts = sorted((list(now.values()).count(member) for member in members), reverse=True)
    needed = sum(max(0, n - share - (rank < odd)) for rank, n in enumerate(counts))
    assert len(moved) == needed
    assert max(Counter(plan.values()).values(), default=0) <= share + (odd > 0)


@given(MEMBERS, SHARDS, st.data())
def test_letting_go_and_taking_end_in_rest(
    members: set[str], shards: int, data: st.DataObject
) -> None:
    """The plan for a world that follows the plan is that world: nothing flaps."""
    names = claim_names(shards)[1:]
    holder = st.sampled_from([None, *sorted(members)])
    world = {name: data.draw(holder) for name in names}
    for _ in range(2):
        plan = assign(world, members)
        world = {name: plan.get(name) for name in names}
    sizes = [list(world.values()).count(member) for member in members]
    assert sum(sizes) == shards
    assert max(sizes) - min(sizes) <= 1
    assert assign(world, members) == world


def test_who_leaves_keeps_its_shards_until_it_gives_them_back() -> None:
    """It is no member any more, but its work in progress has not ended."""
    now = {"shard-0": "gone", "shard-1": None, "shard-2": "a"}
    assert assign(now, {"a", "b"}) == {"shard-1": "b", "shard-2": "a"}
