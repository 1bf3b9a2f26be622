"""Guests that cannot go back to what they were, which libvirt finds out when it has ended them."""

from datetime import UTC, datetime

import libvirt
import pytest

from lesser_qemu import lesser_qemu
from libvirt_daemon import LibvirtDaemon
from novacron.core.errors import DriverError, OutOfCapacity, Rejected, Unreachable
from novacron.core.machine import MachinePlan, Power
from novacron.core.snapshot import RestoreOrder, SnapshotOrder
from novacron.drivers.libvirt import LibvirtDriver, snapshot_restore
from novacron.drivers.libvirt import snapshot_record as on_record
from novacron.drivers.libvirt.build import Builder
from novacron.drivers.libvirt.look import find
from novacron.drivers.libvirt.snapshot_book import put_away
from novacron.drivers.libvirt.snapshot_record import Note
from unit.drivers.libvirt.hosts import (
    created,
    deleted,
    domain_of,
    eventually,
    machine,
    running,
)

BACK = RestoreOrder("at-work", "r1")


async def with_memory(driver: LibvirtDriver) -> MachinePlan:
    """Return a guest that runs, with a snapshot of its memory."""
    plan = await running(driver)

    order = SnapshotOrder("at-work", memory=True)
    await eventually(lambda: taken(driver, plan, order), "the snapshot is taken")
    return plan


async def taken(driver: LibvirtDriver, plan: MachinePlan, order: SnapshotOrder) -> bool:
    """Have a snapshot, and say whether it is there."""
    await driver.take_snapshot(plan.ref, order)
    return bool(await driver.snapshots(plan.ref))


async def outcome(driver: LibvirtDriver, plan: MachinePlan) -> DriverError:
    """Return what is said in the end of a guest that is to go back."""
    said: list[DriverError] = []

    async def is_told() -> bool:
        try:
            await driver.restore_snapshot(plan.ref, BACK)
        except DriverError as error:
            said.append(error)
        return bool(said)

    await eventually(is_told, "it says what came of it")
    return said[0]


async def test_a_guest_that_cannot_go_back_to_its_memory_is_not_asked_to_for_ever(
    host: LibvirtDaemon, driver: LibvirtDriver
) -> None:
    """The request has failed for good: the machine is started, and nothing of it stays behind."""
    plan = await with_memory(driver)
    with lesser_qemu(host.pid):
        failed = await outcome(driver, plan)
        assert isinstance(failed, Rejected)
        assert failed.reason == "RestoreFailed"
        assert "missing features: cx16" in str(failed)
        assert "the guest was ended" in str(failed)
        seen = await driver.observe(plan.ref)
        assert seen is not None
        assert (seen.power, seen.changing) == (Power.OFF, None)
        with domain_of(host, plan) as domain:
            assert domain.snapshotListNames() == ["at-work"]
        await driver.set_power(plan.ref, Power.ON)
        seen = await driver.observe(plan.ref)
        assert seen is not None
        assert seen.power is Power.ON
    assert [each.restored for each in await driver.snapshots(plan.ref)] == [""]
    await deleted(driver, plan)


@pytest.mark.parametrize("went_back", [True, False])
async def test_a_machine_that_goes_to_another_host_amid_a_restore_goes_back_once(
    driver: LibvirtDriver, monkeypatch: pytest.MonkeyPatch, *, went_back: bool
) -> None:
    """Whoever began may have died before it was noted, and what was written since is not lost."""
    plan = machine()
    await created(driver, plan)
    await eventually(lambda: taken(driver, plan, SnapshotOrder("at-work")), "it is taken")

    def dies_amid_it(builder: Builder) -> None:
        domain = find(builder.connection, plan.ref.uid)
        assert domain is not None
        record, note = on_record.find(domain.handle, "at-work"), Note(made=True, restored="r1")
        assert record is not None
        on_record.write(domain.handle, on_record.MARKER, note, datetime.now(UTC), current=True)
        if went_back:
            domain.handle.revertToSnapshot(record.handle, 0)
        put_away(builder.pool, domain)

    await driver._work(dies_amid_it)
    tried: list[str] = []
    real = snapshot_restore._go_back

    def go_back(handle: libvirt.virDomain, record: on_record.Record) -> None:
        tried.append(record.name)
        real(handle, record)

    monkeypatch.setattr(snapshot_restore, "_go_back", go_back)
    await driver.pack(plan.ref)

    async def is_restored() -> bool:
        await driver.restore_snapshot(plan.ref, BACK)
        return [each.restored for each in await driver.snapshots(plan.ref)] == ["r1"]

    await eventually(is_restored, "it is noted")
    assert tried == ([] if went_back else ["at-work"])
    await deleted(driver, plan)


@pytest.mark.parametrize(
    ("code", "said", "told"),
    [
        (libvirt.VIR_ERR_INTERNAL_ERROR, "Cannot allocate memory", OutOfCapacity),
        (libvirt.VIR_ERR_RPC, "connection closed", Unreachable),
    ],
)
async def test_what_may_go_well_later_is_tried_again(
    driver: LibvirtDriver,
    monkeypatch: pytest.MonkeyPatch,
    code: int,
    said: str,
    told: type[DriverError],
) -> None:
    """A host that has no room now, or does not answer, may do it another time."""

    def fails(*_: object) -> None:
        error = libvirt.libvirtError(said)
        error.err = (code, libvirt.VIR_FROM_QEMU, said, 2, None, None, None, 0, 0)
        raise error

    plan = await with_memory(driver)
    with monkeypatch.context() as patched:
        patched.setattr(libvirt.virDomain, "revertToSnapshot", fails)
        assert isinstance(await outcome(driver, plan), told)
    await deleted(driver, plan)
