"""Machines whose first disk is not where it was: a guest's data are not to be made anew."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import libvirt
import pytest

from libvirt_daemon import LibvirtDaemon
from novacron.core.errors import Rejected
from novacron.core.machine import MachinePlan, Power
from novacron.core.snapshot import RestoreOrder, SnapshotOrder
from novacron.core.volume import Reclaim, Volume
from novacron.drivers.libvirt import LibvirtDriver, snapshotting
from novacron.drivers.libvirt.build import Builder
from novacron.drivers.libvirt.domain import root_volume
from novacron.drivers.libvirt.look import Domain, find
from novacron.drivers.libvirt.mark import set_mark
from unit.drivers.libvirt.hosts import created, deleted, driver_for, left_on, machine


@pytest.fixture
async def driver(host: LibvirtDaemon) -> AsyncIterator[LibvirtDriver]:
    """A driver; of what a test makes nothing is left."""
    connected = driver_for(host)
    yield connected
    await connected.close()
    assert left_on(host) == set()


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
    await done(driver, plan, lambda it: snapshotting.restore(it, RestoreOrder("early", "r1")))
    await is_refused_without_its_disk(driver, plan)


async def test_nor_is_one_of_a_guest_that_ran_before_any_of_this_was_noted(
    driver: LibvirtDriver, host: LibvirtDaemon
) -> None:
    """A look by the next operator is enough."""
    plan = machine()
    await created(driver, plan)
    await driver.set_power(plan.ref, Power.ON)
    await done(driver, plan, _forget_that_it_runs)
    following = driver_for(host)
    await following.machines("far")
    await following.close()
    await driver.set_power(plan.ref, Power.OFF, force=True)
    await is_refused_without_its_disk(driver, plan)


def _forget_that_it_runs(domain: Domain) -> None:
    mark = replace(domain.configured.mark, begun=False)
    set_mark(domain.handle, mark, libvirt.VIR_DOMAIN_AFFECT_CONFIG)


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
    await driver.reclaim(plan.ref, ["data"])


async def test_a_disk_that_no_guest_had_is_made_anew(driver: LibvirtDriver) -> None:
    """There is nothing on it: its making was cut short, or might as well have been."""
    plan = machine()
    await created(driver, plan)
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
