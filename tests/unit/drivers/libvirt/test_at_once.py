"""A machine whose image is on its host already is made, and started, by an order each."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from functools import partialmethod
from typing import Any

import libvirt
import pytest

from libvirt_daemon import LibvirtDaemon
from novacron.core.driver import Accepted
from novacron.core.machine import MachinePlan, Observed, Power
from novacron.drivers.libvirt import LibvirtDriver
from novacron.drivers.libvirt.build import Builder
from novacron.drivers.libvirt.look import find, read_all
from novacron.drivers.libvirt.shelf import InStock
from novacron.drivers.libvirt.stock import Stock
from unit.drivers.libvirt.hosts import created, deleted, driver_for, eventually, left_on, machine


@pytest.fixture
async def driver(host):
    """A driver that has brought the image; of what a test makes nothing is left."""
    connected = driver_for(host)
    first = machine()
    await created(connected, first)
    await deleted(connected, first)
    yield connected
    await connected.close()
    assert left_on(host) == set()


async def test_it_is_complete_when_the_order_returns(driver: LibvirtDriver) -> None:
    """And what the order tells is what a look finds."""
    plan = machine()
    made = await driver.create(plan)
    assert made.look_again == timedelta(0)
    assert made.seen is not None
    assert made.seen == await driver.observe(plan.ref)
    assert (made.seen.power, made.seen.changing, made.seen.abandoned) == (Power.OFF, None, False)
    started = await driver.set_power(plan.ref, Power.ON)
    assert started.seen is not None
    assert started.seen.power is Power.ON
    assert await driver.create(plan) == Accepted(seen=await driver.observe(plan.ref))
    await deleted(driver, plan)


async def test_a_disk_that_was_there_stays_when_its_image_went_away(driver: LibvirtDriver) -> None:
    """Another process made it, and its guest may have written to it since."""
    plan = machine()
    await created(driver, plan)
    gone = InStock("image-that-went.qcow2", "qcow2", 1)

    def complete(builder: Builder) -> None:
        there = find(builder.connection, plan.ref.uid)
        assert there is not None
        builder.complete(plan, gone, there)

    await driver._work(complete)
    assert await driver._work(lambda builder: builder.has_root(plan.ref.uid))
    await deleted(driver, plan)


async def test_an_image_that_went_away_meanwhile_is_brought_again(
    driver: LibvirtDriver, host: LibvirtDaemon
) -> None:
    """What was remembered of it does no harm."""
    _remove_images(host)
    plan = machine()
    assert (await driver.create(plan)).seen is None
    assert (await created(driver, plan)).changing is None
    await deleted(driver, plan)


@pytest.mark.parametrize("moment", [20.0, 0.05])
async def test_an_image_that_others_have_just_begun_to_bring_is_waited_for_a_moment(
    host: LibvirtDaemon, monkeypatch: pytest.MonkeyPatch, moment: float
) -> None:
    """One that is there by then saves a machine all orders but the first; no other keeps it."""
    may_come, brought = threading.Event(), Stock.ensure

    def slowly(*given: Any) -> Any:
        assert may_come.wait(20)
        return brought(*given)

    monkeypatch.setattr(Stock, "ensure", slowly)
    monkeypatch.setattr("novacron.drivers.libvirt.building.A_MOMENT", moment)
    fresh, plans = driver_for(host), (machine(), machine())
    assert (await fresh.create(plans[0])).seen is None
    await eventually(lambda: _waits_for_its_image(fresh, plans[0]), "the image is being brought")
    second = asyncio.create_task(fresh.create(plans[1]))
    if moment < 1:
        assert (await second).seen is None
    may_come.set()
    made = (await second).seen
    assert moment < 1 or (made is not None and made.changing is None)
    for plan in plans:
        await created(fresh, plan)
        await deleted(fresh, plan)
    await fresh.close()


async def _waits_for_its_image(driver: LibvirtDriver, plan: MachinePlan) -> bool:
    seen = await driver.observe(plan.ref)
    return seen is not None and seen.progress is not None


def _remove_images(host: LibvirtDaemon) -> None:
    connection = libvirt.open(host.uri)
    try:
        for pool in connection.listAllStoragePools():
            for name in pool.listVolumes():
                if name.startswith("image-"):
                    pool.storageVolLookupByName(name).delete()
    finally:
        connection.close()


async def test_a_start_of_ours_is_no_news(driver: LibvirtDriver) -> None:
    """Whoever ordered it was told; another look would be in vain."""
    plan, other = machine(), machine()
    news: list[str] = []
    await driver.create(plan)
    driver.on_change(news.append)
    await driver.set_power(plan.ref, Power.ON)
    await driver.create(other)
    await driver.set_power(other.ref, Power.ON)
    await driver.set_power(other.ref, Power.OFF, force=True)

    async def heard() -> bool:
        return other.ref.uid in news

    # Events come in their order: by the end of this one all earlier ones were heard.
    await eventually(heard, "the end of a guest is told")
    assert plan.ref.uid not in news
    for each in (plan, other):
        await deleted(driver, each)


class Held:
    """A function that waits, once it was called, until it may end."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.begun, self.may_end = threading.Event(), threading.Event()

    def __call__(self, *given: Any, **more: Any) -> Any:
        found = self.function(*given, **more)
        self.begun.set()
        assert self.may_end.wait(20)
        return found

    async def begins(self) -> None:
        assert await asyncio.to_thread(self.begun.wait, 20)


async def test_a_look_at_all_tells_nothing_half_true_of_what_is_started_meanwhile(
    driver: LibvirtDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it starts how it was, afterwards all there is to say of a guest that runs."""
    plan = machine()
    made = (await driver.create(plan)).seen
    reads, start = Held(read_all), Held(Builder.start)
    monkeypatch.setattr("novacron.drivers.libvirt.census.read_all", reads)
    monkeypatch.setattr(Builder, "start", partialmethod(start))

    async def listed(look: Awaitable[Sequence[Observed]]) -> list[Observed]:
        return [each for each in await look if each.uid == plan.ref.uid]

    during = asyncio.create_task(driver.machines("far"))
    await reads.begins()
    starting = asyncio.create_task(driver.set_power(plan.ref, Power.ON))
    await start.begins()
    reads.may_end.set()
    assert await listed(during) == [made]

    reads.begun.clear()
    reads.may_end.clear()
    across = asyncio.create_task(driver.machines("far"))
    await reads.begins()
    start.may_end.set()
    seen = (await starting).seen
    reads.may_end.set()
    assert await listed(across) == [seen]
    await deleted(driver, plan)
