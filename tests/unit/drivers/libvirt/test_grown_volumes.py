"""What a guest is told of disks that grow: once its agent is there, and once only."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import libvirt
import pytest

from inside_guest import agent_answers
from libvirt_daemon import LibvirtDaemon
from novacron.core.errors import Busy
from novacron.core.machine import MachinePlan, Power
from novacron.core.volume import Volume, volume_id
from novacron.drivers.libvirt import LibvirtDriver, defined, growth
from unit.drivers.libvirt.hosts import created, deleted, domain_of, eventually, machine

SMALL, OTHER = Volume("data", 64), Volume("other", 64)


class Guest:
    """The agent of a guest, as far as it is told that disks grew; "" is the first one."""

    def __init__(self) -> None:
        self.there = True
        self.answer: Callable[[], bool] = lambda: True
        self.told: list[str] = []

    def tell(self, _: object, serial: str = "") -> bool:
        self.told.append(serial)
        return self.answer()


@pytest.fixture
def guest(monkeypatch: pytest.MonkeyPatch) -> Guest:
    """The agent of every guest."""
    made = Guest()
    monkeypatch.setattr(growth, "grow_file_systems", made.tell)
    monkeypatch.setattr(defined, "_is_agent_there", lambda _: made.there)
    defined.Defined.read.cache_clear()
    return made


async def given(driver: LibvirtDriver, *, running: bool) -> MachinePlan:
    """Return a machine with two volumes."""
    plan = replace(machine(), volumes=(SMALL, OTHER))
    await created(driver, plan)
    if running:
        await driver.set_power(plan.ref, Power.ON)
    return plan


def grown(plan: MachinePlan) -> MachinePlan:
    """Return it with a larger first disk and a larger volume."""
    size = replace(plan.resources, disk_mib=plan.resources.disk_mib + 64)
    return replace(plan, resources=size, volumes=(replace(SMALL, size_mib=96), OTHER))


async def looked(driver: LibvirtDriver) -> None:
    """Look at all machines, and let what comes of that be done."""
    await driver.machines("far")
    task = driver._noting._task
    if task is not None:
        await asyncio.wait({task})


async def test_a_guest_is_told_of_what_grew_at_once_and_once(
    driver: LibvirtDriver, guest: Guest
) -> None:
    """And of nothing that did not."""
    plan = await given(driver, running=True)
    for _ in range(2):
        await driver.resize(grown(plan))
        await looked(driver)
    assert guest.told == ["", "data"]
    await deleted(driver, plan)


async def test_a_guest_is_told_of_a_kept_volume_that_came_to_it_and_grew(
    driver: LibvirtDriver, guest: Guest
) -> None:
    """Its file system is as large as the volume was when another machine had it."""
    former = await given(driver, running=False)
    await deleted(driver, former)
    one = volume_id(former.ref.name, "data", former.ref.uid)
    plan = replace(machine(), volumes=())
    await created(driver, plan)
    await driver.set_power(plan.ref, Power.ON)
    await driver.resize(replace(plan, volumes=(Volume("old", 96, existing=one),)))
    await looked(driver)
    assert guest.told == ["old"]
    await deleted(driver, plan)


@pytest.mark.parametrize("running", [True, False])
async def test_a_guest_whose_agent_comes_later_is_told_then(
    driver: LibvirtDriver, guest: Guest, *, running: bool
) -> None:
    """It was booting when its disks grew, or off; its file systems would stay as they were."""
    guest.there = False
    plan = await given(driver, running=running)
    await driver.resize(grown(plan))
    await driver.set_power(plan.ref, Power.ON)
    await looked(driver)
    assert guest.told == []
    guest.there = True
    defined.Defined.read.cache_clear()
    for _ in range(2):
        await looked(driver)
        await looked(driver)
    assert guest.told == ["", "data"]
    await deleted(driver, plan)


async def test_the_agent_of_a_real_guest_is_told_once_it_is_there(
    driver: LibvirtDriver, host: LibvirtDaemon
) -> None:
    """What it does then is shown elsewhere."""
    plan = await given(driver, running=False)
    await driver.resize(grown(plan))
    with domain_of(host, plan) as domain:

        async def knows() -> bool:
            await looked(driver)
            return "untold" not in domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE)

        assert not await knows(), "it is off"
        await driver.set_power(plan.ref, Power.ON)
        await eventually(knows, "the guest is told")
    await deleted(driver, plan)


async def test_a_real_guest_that_is_frozen_is_told_when_it_goes_on(
    driver: LibvirtDriver, host: LibvirtDaemon
) -> None:
    """Its agent refuses to start anything meanwhile, and its file system would never grow."""
    plan = await given(driver, running=True)
    with domain_of(host, plan) as domain:

        async def speaks() -> bool:
            return agent_answers(domain)

        def knows() -> bool:
            return "untold" not in domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE)

        await eventually(speaks, "its agent answers")
        domain.fsFreeze()
        await driver.resize(grown(plan))
        assert not knows()
        await looked(driver)
        assert not knows()
        domain.fsThaw()
        await looked(driver)
        assert knows()
    await deleted(driver, plan)


async def test_a_guest_whose_agent_does_not_answer_in_time_is_told_again(
    driver: LibvirtDriver, guest: Guest
) -> None:
    """The first of its disks first, so that no agent is waited for once for each of them."""
    guest.answer = lambda: False
    plan = await given(driver, running=True)
    await driver.resize(grown(plan))
    assert guest.told == [""]
    guest.answer = lambda: True
    await looked(driver)
    assert guest.told == ["", "", "data"]
    await deleted(driver, plan)


async def test_a_guest_is_told_of_a_larger_volume_although_somebody_died_before_he_told_it(
    driver: LibvirtDriver, guest: Guest
) -> None:
    """Or its file system would stay as it was until the volume grows once more."""

    def dies() -> bool:
        raise Busy("it ends here")

    plan = await given(driver, running=True)
    larger = replace(plan, volumes=(replace(SMALL, size_mib=96), OTHER))
    guest.answer = dies
    with pytest.raises(Busy, match="it ends here"):
        await driver.resize(larger)
    guest.answer = lambda: True
    await driver.resize(larger)
    assert guest.told == ["data", "data"], "not of the other, which is as it was"
    seen = await driver.observe(plan.ref)
    assert seen is not None
    assert seen.volumes[0].size_mib == 96
    await driver.resize(larger)
    assert guest.told == ["data", "data"], "nor again once that is written down"
    await deleted(driver, plan)
