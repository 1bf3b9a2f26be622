"""Machines whose first disk is not where it was: a guest's data are not to be made anew."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import libvirt
import pytest

from libvirt_daemon import LibvirtDaemon
from novacron.core.errors import Busy, Rejected
from novacron.core.machine import MachinePlan, Power
from novacron.core.snapshot import RestoreOrder, SnapshotOrder
from novacron.core.volume import Reclaim, Volume
from novacron.drivers.libvirt import LibvirtDriver, census, snapshotting
from novacron.drivers.libvirt.belongings import Belongings
from novacron.drivers.libvirt.build import Builder
from novacron.drivers.libvirt.domain import root_volume
from novacron.drivers.libvirt.fitted import stem_of
from novacron.drivers.libvirt.look import Domain, find
from novacron.drivers.libvirt.mark import NAMESPACE, PREFIX, Mark, set_mark
from novacron.drivers.libvirt.seed import seed_of
from novacron.drivers.libvirt.shelf import Shelf
from novacron.drivers.libvirt.snapshot_restore import restore
from unit.drivers.libvirt.hosts import (
    created,
    deleted,
    driver_for,
    eventually,
    left_on,
    machine,
)


@pytest.fixture
async def driver(host: LibvirtDaemon) -> AsyncIterator[LibvirtDriver]:
    """A driver; of what a test makes nothing is left."""
    connected = driver_for(host)
    yield connected
    await connected.close()
    assert left_on(host) == set()


@pytest.fixture
async def following(host: LibvirtDaemon) -> AsyncIterator[LibvirtDriver]:
    """The next operator's driver, which has seen nothing yet."""
    connected = driver_for(host)
    yield connected
    await connected.close()


async def taken_away(driver: LibvirtDriver, plan: MachinePlan) -> bytes:
    """Have the first disk of a machine be away, as if its storage were not mounted."""
    name = root_volume(plan.ref.uid)

    def take(builder: Builder) -> bytes:
        content: bytes = builder.pool.read(name)
        builder.pool.remove(name)
        return content

    return await driver._work(take)


async def put_back(driver: LibvirtDriver, plan: MachinePlan, content: bytes) -> None:
    """Have it there again."""
    name = root_volume(plan.ref.uid)
    await driver._work(lambda builder: builder.pool.fill(name, len(content), [content]))
    await driver._work(lambda builder: builder.pool.refresh())


async def used(driver: LibvirtDriver) -> MachinePlan:
    """Return a machine that is off, and whose guest has run."""
    plan = machine()
    await created(driver, plan)
    await runs(driver, plan)
    return plan


async def runs(driver: LibvirtDriver, plan: MachinePlan) -> None:
    """Have the guest of a machine run for a moment."""
    await driver.set_power(plan.ref, Power.ON)
    await driver.set_power(plan.ref, Power.OFF, force=True)


async def done(driver: LibvirtDriver, plan: MachinePlan, work: Callable[[Domain], None]) -> None:
    """Do something with the machine's domain, as it is."""

    def find_and_do(builder: Builder) -> None:
        domain = find(builder.connection, plan.ref.uid)
        assert domain is not None
        work(domain)

    await driver._work(find_and_do)


async def is_refused_without_its_disk(driver: LibvirtDriver, plan: MachinePlan) -> None:
    """See that the machine is not made anew, and remove it."""
    await taken_away(driver, plan)
    with pytest.raises(Rejected) as refused:
        await driver.create(plan)
    assert refused.value.reason == "DiskLost"
    assert not await has_root(driver, plan)
    await deleted(driver, plan)


async def has_root(driver: LibvirtDriver, plan: MachinePlan) -> bool:
    """Say whether the machine has its first disk."""
    return await driver._work(lambda builder: builder.has_root(plan.ref.uid))


async def test_a_disk_that_a_guest_had_is_not_made_anew(driver: LibvirtDriver) -> None:
    """It would run from the image as if it were new, and its owner would not be told."""
    plan = await used(driver)
    content = await taken_away(driver, plan)
    for _ in range(2):
        with pytest.raises(Rejected, match=f"its disk {root_volume(plan.ref.uid)} is not in pool"):
            await driver.create(plan)
    assert not await has_root(driver, plan)
    await put_back(driver, plan, content)
    seen = await driver.observe(plan.ref)
    assert seen is not None
    assert not seen.abandoned
    started = await driver.set_power(plan.ref, Power.ON)
    assert started.seen is not None
    assert started.seen.power is Power.ON
    await deleted(driver, plan)


async def test_a_disk_that_is_away_is_not_told_of_as_if_it_were_there(
    driver: LibvirtDriver,
) -> None:
    """Whoever has the same elsewhere would take his for a copy, and clear it away."""
    plan = await used(driver)
    content = await taken_away(driver, plan)
    with pytest.raises(Rejected, match=r"its disk .* is not in pool \w+ any more") as refused:
        await driver.pack(plan.ref)
    assert refused.value.reason == "DiskLost"
    await put_back(driver, plan, content)
    disks = Belongings.of((await driver.pack(plan.ref)).contents).disks
    assert root_volume(plan.ref.uid) in {disk.volume for disk in disks}
    await deleted(driver, plan)


@pytest.mark.parametrize("made", [True, False])
async def test_nor_is_a_volume_that_was_there_once(driver: LibvirtDriver, *, made: bool) -> None:
    """One that is yet to be made is in nobody's way."""
    plan = replace(machine(), volumes=(Volume("data", 16, reclaim=Reclaim.DELETE),))
    await created(driver, plan)
    file = f"{stem_of(plan.ref, plan.volumes[0])}.qcow2"
    await driver._work(lambda builder: builder.pool.remove(file))
    if not made:
        await done(driver, plan, _forget_that_volumes_were_made)
        await driver.pack(plan.ref)
    else:
        with pytest.raises(Rejected, match=file):
            await driver.pack(plan.ref)
    await deleted(driver, plan)


def _forget_that_volumes_were_made(domain: Domain) -> None:
    volumes = tuple(replace(each, made=False) for each in domain.configured.mark.volumes)
    mark = replace(domain.configured.mark, volumes=volumes)
    set_mark(domain.handle, mark, libvirt.VIR_DOMAIN_AFFECT_CONFIG)


async def test_a_disk_is_not_made_anew_after_the_machine_was_changed(driver: LibvirtDriver) -> None:
    """What is written down of a machine anew tells of its guest as before."""
    plan = await used(driver)
    await driver.resize(plan)
    await is_refused_without_its_disk(driver, plan)


async def test_nor_is_one_to_which_a_machine_came_back(driver: LibvirtDriver) -> None:
    """It was written down elsewhere before, where that is known, and is off here ever since."""
    plan = await used(driver)
    await done(driver, plan, lambda domain: domain.handle.undefine())
    await created(driver, plan)
    await is_refused_without_its_disk(driver, plan)


async def test_nor_is_one_after_a_snapshot_of_earlier_days(driver: LibvirtDriver) -> None:
    """Going back to it brings the definition of then back, from when there was no guest."""
    plan = machine()
    await created(driver, plan)
    await done(driver, plan, lambda it: snapshotting.take(it, SnapshotOrder("early")))
    await runs(driver, plan)
    await done(driver, plan, lambda it: restore(it, RestoreOrder("early", "r1")))
    await is_refused_without_its_disk(driver, plan)


@pytest.mark.parametrize("power", list(Power))
async def test_nor_is_one_of_a_guest_that_ran_before_any_of_this_was_noted(
    driver: LibvirtDriver, following: LibvirtDriver, power: Power
) -> None:
    """A look by the next operator is enough, also at one that is off by then."""
    plan = await of_an_earlier_operator(driver, power)
    await following.machines("far")
    await eventually(lambda: is_noted(driver, plan), "it is noted", 10)
    await driver.set_power(plan.ref, Power.OFF, force=True)
    await is_refused_without_its_disk(driver, plan)


async def of_an_earlier_operator(driver: LibvirtDriver, power: Power) -> MachinePlan:
    """Return a machine whose guest has run, of which nobody noted that."""
    plan = await used(driver)
    await driver.set_power(plan.ref, power)
    await done(driver, plan, _forget_that_it_ran)
    return plan


def _forget_that_it_ran(domain: Domain) -> None:
    text = re.sub(r' begun="[a-z]*"', "", domain.configured.mark.bare_text)
    kind, flag = libvirt.VIR_DOMAIN_METADATA_ELEMENT, libvirt.VIR_DOMAIN_AFFECT_CONFIG
    domain.handle.setMetadata(kind, text, PREFIX, NAMESPACE, flag)


async def is_noted(driver: LibvirtDriver, plan: MachinePlan) -> bool:
    """Say whether it is written down that the machine's guest has run."""
    marks: list[Mark] = []
    await done(driver, plan, lambda domain: marks.append(domain.configured.mark))
    return bool(marks[0].begun)


async def test_a_change_during_a_look_is_not_written_over_by_the_note(
    driver: LibvirtDriver, following: LibvirtDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a look has read is seconds old where a host has many machines."""
    plan, loop = await of_an_earlier_operator(driver, Power.ON), asyncio.get_running_loop()
    larger = replace(plan, resources=replace(plan.resources, disk_mib=320))
    real = census.read_all

    def meanwhile(*what: Any, **more: Any) -> list[Domain]:
        found = real(*what, **more)
        asyncio.run_coroutine_threadsafe(following.resize(larger), loop).result(20)
        # As long as it runs the change itself notes it, so that is taken back.
        asyncio.run_coroutine_threadsafe(done(driver, plan, _forget_that_it_ran), loop).result(20)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(census, "read_all", meanwhile)
        await following.machines("far")
    await eventually(lambda: is_noted(driver, plan), "it is noted", 10)
    sizes: list[int] = []
    await done(driver, plan, lambda domain: sizes.append(domain.configured.mark.disk_mib))
    assert sizes == [320]
    await deleted(driver, plan)


async def test_a_look_waits_for_nothing_that_is_done_to_a_guest(
    driver: LibvirtDriver, following: LibvirtDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does the note: a guest that is saved or sent is noted when that is over."""
    plan = await of_an_earlier_operator(driver, Power.ON)
    saving = [libvirt.VIR_DOMAIN_JOB_UNBOUNDED, *[0] * 11]
    written: list[str] = []

    def refused(domain: libvirt.virDomain, *_: object) -> int:
        written.append(domain.UUIDString())
        raise libvirt.libvirtError("cannot acquire state change lock")

    with monkeypatch.context() as patch:
        patch.setattr(libvirt.virDomain, "jobInfo", lambda _: saving)
        patch.setattr(libvirt.virDomain, "setMetadata", refused)
        for _ in range(3):
            assert [each.uid for each in await following.machines("far")] == [plan.ref.uid]
            await asyncio.sleep(0.1)
        assert written == []
    await following.machines("far")
    await eventually(lambda: is_noted(driver, plan), "it is noted", 10)
    await deleted(driver, plan)


async def test_a_machine_is_not_noted_while_it_is_written_down_anew(
    driver: LibvirtDriver, following: LibvirtDriver
) -> None:
    """Of two who write what they have read one would write over the other."""
    plan = await of_an_earlier_operator(driver, Power.OFF)
    async with following._turn(plan.ref.uid):
        await following.machines("far")
        await asyncio.sleep(0.3)
        assert not await is_noted(driver, plan)
    await following.machines("far")
    await eventually(lambda: is_noted(driver, plan), "it is noted", 10)
    await deleted(driver, plan)


async def test_to_note_that_a_guest_runs_unmakes_no_volume(driver: LibvirtDriver) -> None:
    """A machine that is made and started in one order has its volumes by then."""
    first = machine()
    await created(driver, first)  # brings the image
    plan = replace(machine(), start=True, volumes=(Volume("data", 16, reclaim=Reclaim.DELETE),))
    made = await driver.create(plan)
    assert made.seen is not None
    assert made.seen.power is Power.ON

    def volumes_are_made(domain: Domain) -> None:
        assert domain.configured.mark.begun
        assert [each.made for each in domain.configured.mark.volumes] == [True]

    await done(driver, plan, volumes_are_made)
    await deleted(driver, first)
    await deleted(driver, plan)
    await driver.reclaim(plan.ref, plan.volumes or ())


async def test_a_disk_that_no_guest_had_is_made_anew(driver: LibvirtDriver) -> None:
    """There is nothing on it: its making was cut short, or might as well have been."""
    plan = machine()
    await created(driver, plan)
    await driver.machines("far")
    await asyncio.sleep(0.3)
    await taken_away(driver, plan)
    await created(driver, plan)
    assert await has_root(driver, plan)
    await deleted(driver, plan)


async def test_what_failed_to_be_made_anew_takes_no_machine_with_it(driver: LibvirtDriver) -> None:
    """Its definition tells of a guest, whose disk may be back in a moment."""
    plan = await used(driver)
    content = await taken_away(driver, plan)
    await driver._building._clear(plan.ref.uid)
    await put_back(driver, plan, content)
    assert await driver.observe(plan.ref) is not None
    await deleted(driver, plan)


async def test_no_disk_is_left_on_an_image_that_another_host_clears_away(
    driver: LibvirtDriver, host: LibvirtDaemon
) -> None:
    """It takes away the mark before it looks for disks; libvirt here hears nothing of either."""
    first, plan = machine(), machine()
    await created(driver, first)  # brings the image

    def complete(builder: Builder) -> None:
        (image,) = Shelf(builder.pool.names()).images()
        (host.directory / "lib/novacron" / image.mark).unlink()
        domain = builder.define(plan, seed_of(plan), None)
        try:
            with pytest.raises(Busy, match="went away"):
                builder.complete(plan, image, domain)
            assert image.mark not in builder.pool.names(), "the next one would find it again"
        finally:
            builder.pool.empty(image.mark, 0, "raw")

    await driver._work(complete)
    assert not await has_root(driver, plan)
    for each in (first, plan):
        await deleted(driver, each)
