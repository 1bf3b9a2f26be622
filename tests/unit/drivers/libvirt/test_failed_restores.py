"""Guests that cannot go back to what they were, which libvirt finds out when it has ended them."""

import libvirt
import pytest

from lesser_qemu import lesser_qemu
from libvirt_daemon import LibvirtDaemon
from novacron.core.errors import DriverError, OutOfCapacity, Rejected, Unreachable
from novacron.core.machine import MachinePlan, Power
from novacron.core.snapshot import RestoreOrder, SnapshotOrder
from novacron.drivers.libvirt import LibvirtDriver
from unit.drivers.libvirt.hosts import deleted, domain_of, eventually, running

BACK = RestoreOrder("at-work", "r1")


async def with_memory(driver: LibvirtDriver) -> MachinePlan:
    """Return a guest that runs, with a snapshot of its memory."""
    plan = await running(driver)

    async def taken() -> bool:
        await driver.take_snapshot(plan.ref, SnapshotOrder("at-work", memory=True))
        return bool(await driver.snapshots(plan.ref))

    await eventually(taken, "the snapshot is taken")
    return plan


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
