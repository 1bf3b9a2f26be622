"""The cache: what is told, to whom, and what comes second changes nothing."""

import asyncio
import logging
from contextlib import suppress

import pytest

from novacron.runtime.cache import Cache, Change
from novacron.runtime.resource import Key, Object, Resource

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
A, B = Key("default", "a"), Key("default", "b")


def widget(key: Key, version: int, value: int = 0) -> Object:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {
            "namespace": key.namespace,
            "name": key.name,
            "resourceVersion": str(version),
            "managedFields": [{"manager": "kubectl"}],
        },
        "spec": {"value": value},
    }


class Told(list[Change]):
    """The changes a subscriber was told of."""

    def summary(self) -> list[tuple[str, int | None, str | None]]:
        return [
            (change.key.name, change.object and change.object["spec"]["value"], change.writer)
            for change in self
        ]


@pytest.fixture
def cache() -> Cache:
    return Cache(WIDGETS)


@pytest.fixture
def told(cache: Cache) -> Told:
    changes = Told()
    cache.subscribe(changes.append)
    return changes


def test_every_change_of_a_watch_is_told(cache: Cache, told: Told) -> None:
    """Controllers live on it."""
    cache.seen(widget(A, 1, 10))
    cache.seen(widget(A, 2, 20))
    cache.gone(widget(A, 3, 20))
    assert told.summary() == [("a", 10, None), ("a", 20, None), ("a", None, None)]
    assert cache.get(A) is None
    assert len(cache) == 0


def test_whoever_subscribes_later_hears_what_is_there(cache: Cache) -> None:
    """A controller that starts after the cache must see everything once."""
    cache.seen(widget(A, 1))
    cache.seen(widget(B, 2))
    told = Told()
    cache.subscribe(told.append)
    assert {change.key for change in told} == {A, B}


def test_who_fails_over_one_object_hears_of_others_and_keeps_it_from_nobody(
    cache: Cache, misunderstood: list[logging.LogRecord]
) -> None:
    """One object that somebody does not understand would end every operator, for ever."""

    def picky(change: Change) -> None:
        if change.key == A:
            raise TypeError("too deep")
        heard.append(change.key)

    heard: list[Key] = []
    told = Told()
    cache.seen(widget(A, 1))
    for handler in (picky, told.append):
        cache.subscribe(handler)
    cache.seen(widget(A, 2))
    cache.seen(widget(B, 3))
    assert heard == [B]
    assert [change.key for change in told] == [A, A, B]
    said = [record.getMessage() for record in misunderstood]
    misunderstood.clear()
    assert said == ["Widget default/a was not understood"] * 2


def test_an_object_nested_too_deeply_keeps_nobody_from_others(
    cache: Cache, told: Told, misunderstood: list[logging.LogRecord]
) -> None:
    """It can be read from the server and not be written again; as it was before it is still there.

    KubeVirt's kinds have places where whoever may write them nests what he likes.
    """
    cache.seen(widget(A, 1, value=1))
    deep: Object = {}
    for _ in range(300):
        deep = {"deeper": deep}
    cache.seen(widget(A, 2) | {"spec": deep})
    cache.seen(widget(B, 3) | {"spec": deep})
    assert [record.getMessage()[:33] for record in misunderstood] == [
        "Widget default/a cannot be kept: ",
        "Widget default/b cannot be kept: ",
    ]
    misunderstood.clear()
    assert B not in cache
    kept = cache.get(A)
    assert kept is not None
    assert kept["metadata"]["resourceVersion"] == "1"
    cache.seen(widget(B, 4))
    assert [change.key for change in told] == [A, B]


def test_objects_are_kept_without_managed_fields(cache: Cache) -> None:
    """They are half of an object's bytes and nobody here reads them."""
    cache.seen(widget(A, 1))
    obj = cache.get(A)
    assert obj is not None
    assert "managedFields" not in obj["metadata"]


def test_what_is_read_may_be_changed(cache: Cache) -> None:
    """A reconcile works on its own copy."""
    cache.seen(widget(A, 1, 10))
    copy = cache.get(A)
    assert copy is not None
    copy["spec"]["value"] = 99
    again = cache.get(A)
    assert again is not None
    assert again["spec"]["value"] == 10
    assert [obj["spec"]["value"] for obj in cache.objects()] == [10]


def test_an_own_write_is_told_once_and_only_when_the_watch_has_brought_it(
    cache: Cache, told: Told
) -> None:
    """Whoever writes on top of it sooner makes the server do the update twice."""
    cache.seen(widget(A, 1, 10))
    cache.remember(widget(A, 2, 20), "placer")
    assert told.summary() == [("a", 10, None)]
    for _ in range(2):
        cache.seen(widget(A, 2, 20))
    assert told.summary() == [("a", 10, None), ("a", 20, "placer")]


def test_of_two_own_writes_the_last_is_told(cache: Cache, told: Told) -> None:
    """The echo of the first is old news by then, and whoever looks sees both."""
    cache.seen(widget(A, 1, 10))
    cache.remember(widget(A, 2, 20), "placer")
    cache.remember(widget(A, 3, 30), "machine")
    cache.seen(widget(A, 2, 20))
    cache.seen(widget(A, 3, 30))
    assert told.summary() == [("a", 10, None), ("a", 30, "machine")]


def test_somebody_elses_write_on_top_of_ours_is_told_as_theirs(cache: Cache, told: Told) -> None:
    """Our writer has to look at it too."""
    cache.seen(widget(A, 1, 10))
    cache.remember(widget(A, 2, 20), "placer")
    cache.seen(widget(A, 3, 30))
    cache.seen(widget(A, 2, 20))
    assert told.summary() == [("a", 10, None), ("a", 30, None)]


def test_an_answer_that_comes_after_its_echo_changes_nothing(cache: Cache, told: Told) -> None:
    """The two travel on different connections."""
    cache.seen(widget(A, 1, 10))
    cache.seen(widget(A, 2, 20))
    cache.remember(widget(A, 2, 20), "placer")
    assert told.summary() == [("a", 10, None), ("a", 20, None)]


def test_a_watch_that_is_faster_than_the_answer_is_no_news_to_the_writer(
    cache: Cache, told: Told
) -> None:
    """To everybody else it is, and at once."""
    cache.seen(widget(A, 1, 10))
    with cache.writing(A, "placer") as answered:
        cache.seen(widget(A, 2, 20))
        assert told.summary() == [("a", 10, None), ("a", 20, "placer")]
        answered(widget(A, 2, 20))
    assert told.summary() == [("a", 10, None), ("a", 20, "placer")]


def test_what_was_not_ours_after_all_is_told_again(cache: Cache, told: Told) -> None:
    """Also where nobody knows what became of the write."""
    cache.seen(widget(A, 1, 10))
    with suppress(TimeoutError), cache.writing(A, "placer"):
        cache.seen(widget(A, 2, 20))
        raise TimeoutError
    assert told.summary()[1:] == [("a", 20, "placer"), ("a", 20, None)]


def test_of_two_who_write_at_once_each_looks(cache: Cache, told: Told) -> None:
    """Nobody can tell whose it is before the answers are there."""
    cache.seen(widget(A, 1, 10))
    with cache.writing(A, "placer"), cache.writing(A, "machine"):
        cache.seen(widget(A, 2, 20))
    assert told.summary()[1:] == [("a", 20, None)]


def test_an_own_write_is_read_back_at_once(cache: Cache) -> None:
    """A second look right after a write must not decide on what was before it."""
    cache.seen(widget(A, 1, 10))
    cache.remember(widget(A, 2, 20), "placer")
    obj = cache.get(A)
    assert obj is not None
    assert obj["spec"]["value"] == 20


def test_an_answer_after_the_deletion_does_not_bring_the_object_back(
    cache: Cache, told: Told
) -> None:
    """Nothing would ever delete it again."""
    cache.seen(widget(A, 1))
    cache.gone(widget(A, 3))
    cache.remember(widget(A, 2), "placer")
    assert cache.get(A) is None
    assert told[-1].object is None


def test_an_answer_before_the_deletion_does_not_hold_it_up(cache: Cache) -> None:
    """The deletion is newer than the write."""
    cache.seen(widget(A, 1))
    cache.remember(widget(A, 2), "placer")
    cache.gone(widget(A, 3))
    assert cache.get(A) is None


def test_the_deletion_of_a_namesake_does_not_hit_its_successor(cache: Cache, told: Told) -> None:
    """Deleted and made anew, and the list that has the new one came before the old news."""
    cache.seen(widget(A, 7))
    cache.listed("", {A}, "8")
    cache.gone(widget(A, 5))
    assert cache.get(A) is not None


def test_what_a_list_does_not_have_is_gone(cache: Cache, told: Told) -> None:
    """After 410 nobody will tell what was deleted meanwhile."""
    cache.seen(widget(A, 1))
    cache.seen(widget(B, 2))
    cache.listed("", {A}, "9")
    assert cache.keys() == [A]
    assert told[-1] == Change(B, None, None)


def test_what_was_written_after_a_list_was_read_stays(cache: Cache) -> None:
    """A list is old by the time its last page is here."""
    cache.seen(widget(A, 1))
    cache.remember(widget(A, 12), "placer")
    cache.listed("", set(), "9")
    assert cache.keys() == [A]


def test_a_list_of_one_namespace_says_nothing_of_others(cache: Cache) -> None:
    """With several watched namespaces, each is listed on its own."""
    other = Key("other", "a")
    cache.seen(widget(A, 1))
    cache.seen(widget(other, 2))
    cache.listed("default", set(), "9")
    assert cache.keys() == [other]


def test_news_older_than_the_list_is_no_news(cache: Cache, told: Told) -> None:
    """A watch that lags behind a fresh list still brings what the list knows to be gone."""
    cache.listed("", set(), "9")
    cache.seen(widget(A, 5))
    assert cache.get(A) is None
    cache.seen(widget(A, 10))
    assert cache.get(A) is not None


async def test_synced_waits_for_every_source(cache: Cache) -> None:
    """Nothing may be decided on a half-read world."""
    cache.expect("red")
    cache.expect("blue")
    waiting = asyncio.create_task(cache.synced())
    cache.listed("red", set(), "1")
    await asyncio.sleep(0)
    assert not waiting.done()
    assert not cache.is_synced
    cache.listed("blue", set(), "1")
    await asyncio.wait_for(waiting, 5)
    assert cache.is_synced
