"""Work that takes longer than a call: begun once, one at a time, and its failures are told."""

import asyncio

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


async def test_a_failure_is_told_once_by_the_next_order() -> None:
    """Then it is tried again."""
    errands, slowly, tried = Errands(lambda _: None), asyncio.Event(), list[int]()

    async def work() -> None:
        tried.append(1)
        await slowly.wait()
        raise Rejected("no")

    await errands.run("uid", "snapshot one", work)
    slowly.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    with pytest.raises(Rejected, match="no"):
        await errands.run("uid", "snapshot one", work)
    assert len(tried) == 1
    with pytest.raises(Rejected, match="no"):
        await errands.run("uid", "snapshot one", work)
    assert len(tried) == 2


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


async def test_a_failure_that_nobody_foresaw_is_told_too() -> None:
    """Or the same would begin anew for ever, without a word."""
    errands = Errands(lambda _: None)

    async def work() -> None:
        raise ZeroDivisionError("by zero")

    with pytest.raises(Busy, match="snapshot one failed: ZeroDivisionError: by zero") as told:
        await errands.run("uid", "snapshot one", work)
    assert told.value.reason == "InternalError"
