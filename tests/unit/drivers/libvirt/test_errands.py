"""Work that takes longer than a call: begun once, one at a time, and its failures are told."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from novacron.core.errors import Busy, Rejected
from novacron.drivers.libvirt.errands import Errands


async def test_what_is_under_way_goes_on_and_nothing_else_begins() -> None:
    """The operator orders again and again, and does not remember what it ordered."""
    told: list[str] = []
    errands, ready, begun = Errands(told.append), asyncio.Event(), list[str]()

    async def work() -> None:
        begun.append("snapshot")
        await ready.wait()

    await errands.run("uid", "snapshot one", work)
    await errands.run("uid", "snapshot one", work)
    assert begun == ["snapshot"]
    assert errands.those("snapshot") == {"uid"}
    assert errands.those("restore") == frozenset()
    with pytest.raises(Busy, match="snapshot one"):
        await errands.run("uid", "discard one", work)
    with pytest.raises(Busy, match="snapshot one"):
        errands.require_idle("uid")
    ready.set()
    await errands.close()
    assert told == ["uid"]
    errands.require_idle("uid")


@pytest.mark.looptime
async def test_a_failure_is_told_by_the_next_orders_until_one_may_try_again() -> None:
    """At once it would be tried for ever, by whoever goes on to something else meanwhile."""
    errands, slowly, tried = Errands(lambda _: None), asyncio.Event(), list[int]()
    pause = timedelta(minutes=5)

    async def work() -> None:
        tried.append(1)
        await slowly.wait()
        raise Busy("no", pause)

    await errands.run("uid", "snapshot one", work)
    slowly.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    for _ in range(2):
        with pytest.raises(Busy, match="no"):
            await errands.run("uid", "snapshot one", work)
    assert len(tried) == 1
    await asyncio.sleep(pause.total_seconds())
    with pytest.raises(Busy, match="no"):
        await errands.run("uid", "snapshot one", work)
    assert len(tried) == 2


async def test_a_failure_of_a_machine_that_is_gone_is_forgotten() -> None:
    """Another one may be called as it was."""
    errands, tried = Errands(lambda _: None), list[int]()

    async def work() -> None:
        tried.append(1)
        raise Rejected("no")

    for _ in range(2):
        with pytest.raises(Rejected):
            await errands.run("uid", "snapshot one", work)
        errands.forget("uid")
    assert len(tried) == 2


async def test_each_of_many_that_fail_slowly_is_tried_once() -> None:
    """By who begins from the first of them each time, as whoever keeps a machine's snapshots."""
    ended, tried = asyncio.Event(), list[str]()
    errands = Errands(lambda _: ended.set())

    def slow(name: str) -> Callable[[], Awaitable[None]]:
        async def work() -> None:
            tried.append(name)
            await asyncio.sleep(0.15)
            raise Rejected(f"no room for {name}")

        return work

    names, failed = ["one", "two", "three", "four"], set[str]()
    for _ in range(20):
        failed.clear()
        if errands.under_way("uid"):
            await ended.wait()
        ended.clear()
        for name in names:
            try:
                await errands.run("uid", name, slow(name))
                break
            except Rejected:
                failed.add(name)
    assert failed == set(names)
    assert tried == names


async def test_one_machine_waits_for_another() -> None:
    """Saving the memory of many at once would stop them all for long."""
    errands, first, order = Errands(lambda _: None), asyncio.Event(), list[str]()

    async def long_work() -> None:
        await first.wait()
        order.append("first")

    async def short_work() -> None:
        order.append("second")

    await errands.run("a", "snapshot", long_work)
    await errands.run("b", "snapshot", short_work)
    assert order == []
    first.set()
    await errands.close()
    assert order == ["first", "second"]


async def test_what_takes_very_long_is_in_the_way_of_no_other_machine() -> None:
    """A guest that hangs may never end with it; its own machine is busy until it does."""
    errands, never, ended = (
        Errands(lambda _: None, longest_seconds=0.01),
        asyncio.Event(),
        list[str](),
    )

    async def hangs() -> None:
        try:
            await never.wait()
        finally:
            ended.append("hangs")

    async def works() -> None:
        ended.append("works")

    await errands.run("a", "snapshot", hangs)
    await errands.run("b", "snapshot", works)
    assert ended == ["works"]
    assert errands.under_way("a") == "snapshot"
    never.set()
    await errands.close()
    assert ended == ["works", "hangs"]
    assert errands.under_way("a") is None


async def test_what_has_not_begun_gives_way_to_whatever_else_is_to_be_done() -> None:
    """It waits for other guests, which may hang; its own machine is to be started, or deleted."""
    errands, first, ended = Errands(lambda _: None), asyncio.Event(), list[str]()

    async def long_work() -> None:
        await first.wait()

    async def other_work() -> None:
        ended.append("b")

    await errands.run("a", "snapshot", long_work)
    await errands.run("b", "snapshot", other_work)
    errands.require_idle("b")
    assert errands.under_way("b") is None
    with pytest.raises(Busy, match="snapshot"):
        errands.require_idle("a")
    await errands.run("b", "restore", other_work)
    assert errands.under_way("b") == "restore", "the end of the other one is not the end of this"
    first.set()
    await errands.close()
    assert ended == ["b"]
    assert errands.under_way("b") is None


async def test_where_many_hang_no_more_begin_and_nobody_waits_for_them() -> None:
    """Each keeps a worker of its host's daemon, which is to be left some for all else."""
    never, ended = asyncio.Event(), list[str]()
    errands = Errands(lambda _: None, longest_seconds=0.01, most_at_once=2)

    async def hangs() -> None:
        await never.wait()

    async def works() -> None:
        ended.append("works")

    for uid in ("a", "b"):
        await errands.run(uid, "snapshot", hangs)
    with pytest.raises(Busy, match="at work on 2 other guests for very long"):
        await errands.run("c", "snapshot", works)
    errands.require_idle("c")
    never.set()
    await asyncio.sleep(0.01)
    errands.forget("c")
    await errands.run("c", "snapshot", works)
    assert ended == ["works"]


async def test_what_does_not_end_soon_is_cut_off_with_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The next process finds what there is of it."""
    errands, never, cut_off = Errands(lambda _: None), asyncio.Event(), list[str]()

    async def hangs() -> None:
        try:
            await never.wait()
        except asyncio.CancelledError:
            cut_off.append("hangs")
            raise

    await errands.run("a", "snapshot", hangs)
    monkeypatch.setattr("novacron.drivers.libvirt.errands.FINISH_SECONDS", 0.01)
    await errands.close()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert cut_off == ["hangs"]


async def test_a_failure_that_nobody_foresaw_is_told_too() -> None:
    """Or the same would begin anew for ever, without a word."""
    errands = Errands(lambda _: None)

    async def work() -> None:
        raise ZeroDivisionError("by zero")

    with pytest.raises(Busy, match="snapshot one failed: ZeroDivisionError: by zero") as told:
        await errands.run("uid", "snapshot one", work)
    assert told.value.reason == "InternalError"
