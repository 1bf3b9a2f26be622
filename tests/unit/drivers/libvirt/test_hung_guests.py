"""Guests whose QEMU hangs: their machines can be deleted, and stand in nobody else's way."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from libvirt_daemon import LibvirtDaemon
from novacron.core.errors import Busy, DriverError
from novacron.core.machine import MachinePlan, Power
from novacron.core.snapshot import SnapshotOrder
from novacron.drivers.libvirt import LibvirtDriver, connection, snapshotting
from novacron.drivers.libvirt.errands import ERRANDS_AT_ONCE
from novacron.drivers.libvirt.look import Domain
from novacron.drivers.libvirt.noting import Noting
from unit.drivers.libvirt.hosts import created, deleted, domain_of, eventually, machine, running

ONE = SnapshotOrder("one")


class Storage:
    """A storage that does not answer any more: who takes a snapshot of what is on it hangs.

    The agents of guests may be as ``mute`` as it is.
    """

    def __init__(self) -> None:
        self.on_it: set[str] = set()
        self.mute: set[str] = set()
        self.answers = threading.Event()

    def take(self, domain: Domain, order: SnapshotOrder, lingers: Callable[[], object]) -> None:
        if domain.uid in self.mute:
            lingers()
        if domain.uid in self.on_it | self.mute:
            self.answers.wait()
        TAKE(domain, order)


TAKE = snapshotting.take


@pytest.fixture
def dead(monkeypatch: pytest.MonkeyPatch) -> Iterator[Storage]:
    """Such a storage, with nothing on it."""
    storage = Storage()
    monkeypatch.setattr(snapshotting, "take", storage.take)
    yield storage
    storage.answers.set()


async def off(driver: LibvirtDriver, count: int) -> list[MachinePlan]:
    """Return so many machines that are off."""
    plans = [machine() for _ in range(count)]
    for plan in plans:
        await created(driver, plan)
    return plans


async def taken(driver: LibvirtDriver, plan: MachinePlan) -> None:
    """Have a machine have a snapshot."""

    async def is_taken() -> bool:
        await driver.take_snapshot(plan.ref, ONE)
        return [each.name for each in await driver.snapshots(plan.ref)] == ["one"]

    await eventually(is_taken, "the machine has a snapshot", 20)


def hang(host: LibvirtDaemon, plan: MachinePlan) -> None:
    """Have a guest's QEMU answer nobody any more."""
    with domain_of(host, plan) as domain:
        file = host.directory / "run/qemu" / f"{domain.name()}.pid"
    os.kill(int(file.read_text()), signal.SIGSTOP)


async def test_a_machine_whose_guest_hangs_amid_a_snapshot_can_be_deleted(
    host: LibvirtDaemon, driver: LibvirtDriver
) -> None:
    """The snapshot would go with it, so that nobody waits for it; others are taken then."""
    hung, other = await running(driver), await running(driver)
    hang(host, hung)
    await driver.take_snapshot(hung.ref, ONE)
    await deleted(driver, hung)
    await taken(driver, other)
    await deleted(driver, other)


async def test_guests_that_hang_cost_other_machines_nothing(
    driver: LibvirtDriver, dead: Storage
) -> None:
    """However many they are: the others have snapshots, or hear why not, and all else."""
    *hung, other, last = await off(driver, ERRANDS_AT_ONCE + 2)
    dead.on_it |= {plan.ref.uid for plan in hung}
    driver._errands.longest_seconds = 0.01
    for plan in hung[:-1]:
        await driver.take_snapshot(plan.ref, ONE)
    await taken(driver, other)
    async with asyncio.timeout(20):
        assert await driver._work_long(lambda _: "done") == "done"
    await driver.take_snapshot(hung[-1].ref, ONE)
    with pytest.raises(Busy, match="which seem to hang"):
        await driver.take_snapshot(last.ref, ONE)
    await driver.resize(last)
    await driver.set_power(last.ref, Power.ON)
    dead.answers.set()
    for plan in (*hung, other, last):
        await deleted(driver, plan)


async def test_a_guest_whose_agent_is_mute_amid_a_snapshot_keeps_no_other_waiting(
    driver: LibvirtDriver, dead: Storage
) -> None:
    """An owner who has it answer when he likes would have his neighbours go without theirs."""
    mute, other = await off(driver, 2)
    dead.mute.add(mute.ref.uid)
    await driver.take_snapshot(mute.ref, ONE)
    await taken(driver, other)
    with pytest.raises(Busy, match="snapshot one"):
        await driver.resize(mute)
    dead.answers.set()
    await taken(driver, mute)
    for plan in (mute, other):
        await deleted(driver, plan)


async def test_a_machine_is_deleted_that_waits_for_others_with_its_snapshot(
    driver: LibvirtDriver, dead: Storage
) -> None:
    """They may hang for minutes, and its snapshot would go with it."""
    hung, waiting, other = await off(driver, 3)
    dead.on_it.add(hung.ref.uid)
    for plan in (hung, waiting, other):
        await driver.take_snapshot(plan.ref, ONE)
    await driver.delete(waiting.ref)
    assert await driver.observe(waiting.ref) is None
    await driver.set_power(other.ref, Power.ON)
    assert not (await driver.pack(other.ref)).contents["changing"]
    dead.answers.set()
    await taken(driver, other)
    for plan in (hung, other):
        await deleted(driver, plan)


async def test_what_is_noted_of_a_machine_keeps_it_busy_for_a_minute_at_most(
    driver: LibvirtDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may wait for a place, or hang; whoever wants to start the machine waits behind it."""
    (plan,) = await off(driver, 1)
    hangs = threading.Event()
    monkeypatch.setattr(connection, "CALL_SECONDS", 0.5)
    noting = Noting(
        lambda _: driver._work_long(lambda _: hangs.wait()), lambda _: True, driver._turn
    )
    noting.begin([plan.ref.uid])
    await asyncio.sleep(0)
    assert driver._is_being_written(plan.ref.uid)
    try:
        async with asyncio.timeout(20):
            with suppress(DriverError):
                await driver.resize(plan)
    finally:
        hangs.set()
    monkeypatch.undo()
    await deleted(driver, plan)
