"""Images on their way: shared by those who want the same, and nobody's trouble but theirs."""

import asyncio
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from libvirt_daemon import LibvirtDaemon
from novacron.core.errors import Busy
from novacron.core.machine import MachinePlan
from novacron.drivers.libvirt import LibvirtHost
from novacron.drivers.libvirt.building import Building
from novacron.drivers.libvirt.connection import IMAGES_AT_ONCE, Connection
from novacron.drivers.libvirt.deliveries import Deliveries, Delivery
from novacron.drivers.libvirt.shelf import InStock
from novacron.drivers.libvirt.stock import Stock
from novacron.drivers.libvirt.work import no_credentials
from novacron.images import Located, Opened, Reach, WebBytes
from unit.drivers.libvirt.hosts import deleted, driver_for, eventually, machine

CHECKSUM = "sha256:" + "1" * 64
IMAGE = InStock("image-x-y.raw", "raw", 512)


def at(source: str, checksum: str | None = CHECKSUM, url: str = "") -> Located:
    return Located(source, WebBytes(url or source, Reach()), checksum)


@dataclass
class Carried:
    """What has a delivery brought: it waits until it may come, or fails."""

    may_come: asyncio.Event = field(default_factory=asyncio.Event)
    called: asyncio.Event = field(default_factory=asyncio.Event)
    begun: int = 0
    given_up: bool = False
    failure: Exception | None = None

    async def __call__(self, _: object) -> InStock:
        self.begun += 1
        self.called.set()
        try:
            await self.may_come.wait()
        except asyncio.CancelledError:
            self.given_up = True
            raise
        if self.failure is not None:
            raise self.failure
        return IMAGE


async def test_one_delivery_is_for_all_who_want_the_same_from_the_same_place() -> None:
    """And for nobody else: any server can promise an image that others wait for."""
    carried, plan = Carried(), machine()
    deliveries = Deliveries(Stock(), carried)
    with deliveries.wanted(at("https://a/x"), plan) as first:
        with deliveries.wanted(at("https://a/x"), machine()) as second:
            assert first is second is deliveries.find(at("https://a/x"), plan)
        for other in (
            at("https://b/x"),
            at("https://a/x", None),
            at("marketplace://x", CHECKSUM, "https://a/x"),
        ):
            assert deliveries.find(other, plan) is None
        carried.may_come.set()
        assert await first.task == IMAGE
    assert carried.begun == 1
    assert deliveries.find(at("https://a/x"), plan) is None


async def test_a_delivery_ends_when_the_last_one_who_wanted_it_goes() -> None:
    """Whoever comes then has one of his own."""
    carried, plan = Carried(), machine()
    deliveries = Deliveries(Stock(), carried)
    left: list[Delivery] = []
    with deliveries.wanted(at("https://a/x"), plan) as first:
        with deliveries.wanted(at("https://a/x"), machine()):
            await asyncio.sleep(0)
        assert not first.progress.unwanted
        left.append(first)
    assert left[0].progress.unwanted
    assert deliveries.find(at("https://a/x"), plan) is None
    with deliveries.wanted(at("https://a/x"), plan) as second:
        await asyncio.wait({left[0].task})
        assert left[0].task.cancelled()
        assert second is deliveries.find(at("https://a/x"), plan)
        carried.may_come.set()
        assert await second.task == IMAGE


async def test_an_image_of_a_machine_that_is_not_to_be_made_any_further_is_not_brought() -> None:
    """It would keep a place from others for as long as its source likes."""
    carried, plan, ended = Carried(), machine(), asyncio.Event()

    async def work(_: object) -> bool:
        return False

    async def located(_: MachinePlan) -> Located:
        return at("https://a/x")

    building = Building(Stock(), located, work, carried, lambda _: ended.set())
    building.start(plan)
    await carried.called.wait()
    assert building.stop(plan.ref.uid)
    await ended.wait()
    await asyncio.sleep(0)
    assert carried.given_up


async def test_what_nobody_thought_of_is_logged_once_for_all(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """And told as a failure, with a pause."""
    carried = Carried(failure=RecursionError("too deep"))
    deliveries = Deliveries(Stock(), carried)
    carried.may_come.set()
    with (
        caplog.at_level(logging.ERROR),
        deliveries.wanted(at("https://a/x"), machine()) as one,
        deliveries.wanted(at("https://a/x"), machine()) as same,
    ):
        for each in (one, same):
            with pytest.raises(Busy, match="RecursionError: too deep") as told:
                await each.task
    assert told.value.reason == "InternalError"
    assert told.value.after.total_seconds() >= 30
    assert len(caplog.records) == 1
    assert caplog.records[0].exc_info


class Odd:
    """Bytes that cannot be read for a reason that nobody foresaw."""

    shown = identity = "https://odd.example/x"

    def __init__(self) -> None:
        self.asked = 0

    @contextmanager
    def open(self, start: int = 0, validator: str = "") -> Iterator[Opened]:
        self.asked += 1
        raise RecursionError("too deep")
        yield Opened(None, start, None, validator)  # type: ignore[unreachable]


async def test_a_machine_that_fails_in_an_unknown_way_says_so_and_rests(
    host: LibvirtDaemon,
) -> None:
    """It was begun anew at once, again and again, and nobody was told why."""
    place = Odd()

    async def odd(plan: MachinePlan) -> Located:
        return Located(plan.image, place)

    driver, plan = driver_for(host, images=odd), machine()
    told: list[Busy] = []

    async def tells() -> bool:
        try:
            await driver.create(plan)
        except Busy as error:
            told.append(error)
        return len(told) == 3

    try:
        await eventually(tells, "the failure is told, and told again")
        assert {error.reason for error in told} == {"InternalError"}
        assert "too deep" in str(told[0])
        assert place.asked == 1
        await deleted(driver, plan)
    finally:
        await driver.close()


async def test_images_that_do_not_come_keep_no_other_long_work(host: LibvirtDaemon) -> None:
    """Snapshots and restores have places of their own."""
    connection = Connection(LibvirtHost("far", host.uri), no_credentials, lambda *_: None)
    begun, may_end = threading.Semaphore(0), threading.Event()

    def stand_still(_: object) -> bool:
        begun.release()
        return may_end.wait(30)

    stuck = [
        asyncio.create_task(connection.run_for_image(stand_still))
        for _ in range(IMAGES_AT_ONCE + 1)
    ]
    try:
        for _ in range(IMAGES_AT_ONCE):
            assert await asyncio.to_thread(begun.acquire, timeout=20)
        async with asyncio.timeout(20):
            assert await connection.run_long(lambda _: "done") == "done"
            assert await connection.run_errand(lambda _: "done") == "done"
        assert not any(task.done() for task in stuck)
    finally:
        may_end.set()
        await asyncio.gather(*stuck)
        await connection.close()
