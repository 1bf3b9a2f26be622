"""Guests that are there and do not run, as libvirt really tells of them."""

import json
from dataclasses import dataclass, field, replace
from typing import Any, cast

import libvirt
import libvirt_qemu
import pytest

from libvirt_daemon import LibvirtDaemon
from novacron.core.machine import Power
from novacron.drivers.libvirt import LibvirtDriver
from novacron.drivers.libvirt.defined import Defined
from novacron.drivers.libvirt.look import Domain
from novacron.drivers.libvirt.mark import Mark
from novacron.drivers.libvirt.standstill import ENOUGH_MIB, OTHERWISE, hindrance, resumed
from unit.drivers.libvirt.hosts import deleted, domain_of, eventually, machine, running

# As libvirt writes a running guest down that has a volume in another pool than its first disk.
STOPPED = """<domain type="kvm"><name>default.web</name><devices>
  <disk type="volume"><source pool="own" volume="machine-1.root.qcow2" index="2"/>
    <target dev="vda"/></disk>
  <disk type="volume"><source pool="own" volume="machine-1.seed" index="1"/>
    <target dev="vdb"/><readonly/></disk>
  <disk type="volume"><source pool="narrow" volume="volume-default.web.data-1.qcow2" index="3"/>
    <target dev="vdc"/></disk></devices></domain>"""
MIB = 1024 * 1024


@dataclass
class Stopped:
    """A guest that QEMU stopped, with how much is free in each pool."""

    free: dict[str, int]
    failed: dict[str, int]
    resumes: int = 0
    asked: list[str] = field(default_factory=list)

    def name(self) -> str:
        """Return what it is called."""
        return "default.web"

    def connect(self) -> "Stopped":
        """Stand in for the connection too."""
        return self

    def storagePoolLookupByName(self, name: str) -> "Stopped":  # noqa: N802 - libvirt's name
        """Stand in for the pool too."""
        self.asked.append(name)
        return self

    def info(self) -> list[int]:
        """Tell how much is free in it."""
        return [2, 0, 0, self.free[self.asked[-1]] * MIB]

    def refresh(self) -> None:
        """See nothing new."""

    def diskErrors(self) -> dict[str, int]:  # noqa: N802 - libvirt's name
        """Tell what failed."""
        return self.failed

    def resume(self) -> None:
        """Go on."""
        self.resumes += 1


def stopped(guest: Stopped) -> Domain:
    """Return the guest as a look finds it."""
    plan = machine()
    written = Defined.written(plan, "default.web", "seed", (), Mark.of(plan), STOPPED)
    turned = (libvirt.VIR_DOMAIN_PAUSED, libvirt.VIR_DOMAIN_PAUSED_IOERROR)
    return Domain(cast("libvirt.virDomain", guest), written, replace(written), *turned)


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


NO_SPACE: Any = libvirt.VIR_DOMAIN_DISK_ERROR_NO_SPACE


def test_a_guest_whose_volume_has_no_room_says_in_which_pool() -> None:
    """That one only: what is free where its other disks are helps nobody."""
    told = hindrance(stopped(Stopped({"own": 900, "narrow": 3}, {"vdc": NO_SPACE})), "far")
    assert told is not None
    assert "in pool narrow (3 MiB free at the last look) of host far" in told.message


@pytest.mark.parametrize(("free", "goes_on"), [(3, False), (300, True)])
def test_a_guest_goes_on_once_there_is_room_where_it_lacked_it(free: int, goes_on: bool) -> None:
    """However full or empty the pool of another of its disks is."""
    for elsewhere in (0, 900):
        guest = Stopped({"own": elsewhere, "narrow": free}, {"vdc": NO_SPACE})
        resumed(stopped(guest))
        assert bool(guest.resumes) is goes_on


def test_a_guest_of_whose_disks_none_is_said_to_have_failed_needs_room_for_all() -> None:
    """QEMU cannot always be asked."""
    guest = Stopped({"own": 900, "narrow": 3}, {})
    resumed(stopped(guest))
    assert not guest.resumes
    guest.free["narrow"] = 300
    resumed(stopped(guest))
    assert guest.resumes


def test_every_standstill_has_a_reason_and_says_what_to_do() -> None:
    """A user can search for the one, and follow the other."""
    for reason, why in OTHERWISE.values():
        assert reason in ("GuestPaused", "GuestCrashed", "GuestSuspended")
        assert "{name}" in why
    assert ENOUGH_MIB > 0
