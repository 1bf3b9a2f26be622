"""Guests that are there and do not run, as libvirt really tells of them."""

import json

import libvirt
import libvirt_qemu

from libvirt_daemon import LibvirtDaemon
from novacron.core.machine import Power
from novacron.drivers.libvirt import LibvirtDriver
from novacron.drivers.libvirt.standstill import ENOUGH_MIB, OTHERWISE
from unit.drivers.libvirt.hosts import deleted, domain_of, eventually, running


async def test_a_guest_that_somebody_paused_is_left_alone(
    driver: LibvirtDriver, host: LibvirtDaemon
) -> None:
    """Whoever did so knows; it is neither called broken nor made to go on."""
    plan = await running(driver)
    with domain_of(host, plan) as domain:
        domain.suspend()
        seen = await driver.observe(plan.ref)
        assert seen is not None
        assert (seen.power, seen.hindered) == (Power.ON, None)
        await driver.set_power(plan.ref, Power.ON)
        assert domain.state() == [libvirt.VIR_DOMAIN_PAUSED, libvirt.VIR_DOMAIN_PAUSED_USER]
    await deleted(driver, plan)


async def test_a_guest_that_qemu_stopped_says_where_to_look(
    driver: LibvirtDriver, host: LibvirtDaemon
) -> None:
    """One by one and among all; nobody has it go on who does not know why it stands still."""
    plan = await running(driver)
    with domain_of(host, plan) as domain:
        libvirt_qemu.qemuMonitorCommand(domain, json.dumps({"execute": "stop"}), 0)

        async def told() -> bool:
            seen = await driver.observe(plan.ref)
            return seen is not None and seen.hindered is not None

        await eventually(told, "it stands still", 10)
        (listed,) = [each for each in await driver.machines("far") if each.uid == plan.ref.uid]
        assert listed.hindered is not None
        assert listed.hindered.reason == "GuestPaused"
        assert "on host far" in listed.hindered.message
        assert f"/var/log/libvirt/qemu/{domain.name()}.log" in listed.hindered.message
        await driver.set_power(plan.ref, Power.ON)
        assert domain.state()[0] == libvirt.VIR_DOMAIN_PAUSED
        domain.resume()
        seen = await driver.observe(plan.ref)
        assert seen is not None
        assert seen.hindered is None
    await deleted(driver, plan)


def test_every_standstill_has_a_reason_and_says_what_to_do() -> None:
    """A user can search for the one, and follow the other."""
    for reason, why in OTHERWISE.values():
        assert reason in ("GuestPaused", "GuestCrashed", "GuestSuspended")
        assert "{name}" in why
    assert ENOUGH_MIB > 0
