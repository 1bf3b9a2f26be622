"""Guests whose QEMU hangs: their machines can be deleted, and stand in nobody else's way."""

import os
import signal

from libvirt_daemon import LibvirtDaemon
from novacron.core.machine import MachinePlan
from novacron.core.snapshot import SnapshotOrder
from novacron.drivers.libvirt import LibvirtDriver
from unit.drivers.libvirt.hosts import deleted, domain_of, eventually, running

ONE = SnapshotOrder("one")


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

    async def is_taken() -> bool:
        await driver.take_snapshot(other.ref, ONE)
        return [each.name for each in await driver.snapshots(other.ref)] == ["one"]

    await eventually(is_taken, "the other machine has a snapshot")
    await deleted(driver, other)
