"""A look at all machines spares those that were just looked at, and misses nothing for long."""

from collections import Counter
from dataclasses import replace
from typing import Any

import libvirt
import pytest

from libvirt_daemon import LibvirtDaemon
from novacron.core.hooks import PRE_START, Ran
from novacron.core.machine import MachinePlan, Observed, Power
from novacron.core.volume import Volume
from novacron.drivers.libvirt import LibvirtDriver, census
from novacron.drivers.libvirt.look import read_all
from novacron.drivers.libvirt.mark import NAMESPACE, PREFIX
from unit.drivers.libvirt.hosts import created, deleted, domain_of, eventually, machine, running


def counted_calls(patch: pytest.MonkeyPatch) -> Counter[str]:
    """Count from now on who asks libvirt what guests use, for all of them or for one."""
    calls: Counter[str] = Counter()

    def count(owner: type, name: str) -> None:
        method = getattr(owner, name)

        def counted(*arguments: Any, **more: Any) -> Any:
            calls[name] += 1
            return method(*arguments, **more)

        patch.setattr(owner, name, counted)

    for owner in (libvirt.virConnect, libvirt.virDomain):
        for name in dir(owner):
            if "Stats" in name or (owner is libvirt.virDomain and name.lower().endswith("info")):
                count(owner, name)
    return calls


async def seen(driver: LibvirtDriver, plan: MachinePlan) -> Observed | None:
    """Return what a look at all tells of one."""
    found = [each for each in await driver.machines("far") if each.uid == plan.ref.uid]
    return found[0] if found else None


async def test_a_machine_seen_since_the_last_look_is_not_read_anew(
    driver: LibvirtDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is by the next one, and all tell the same; what it uses is measured each time."""
    spared: list[bool] = []

    def counted(connection: Any, states: Any, except_for: Any, **more: Any) -> Any:
        spared.append(plan.ref.uid in except_for)
        return read_all(connection, states, except_for, **more)

    monkeypatch.setattr("novacron.drivers.libvirt.census.read_all", counted)
    plan = await running(driver)
    first, second, third = [await seen(driver, plan) for _ in range(3)]
    assert spared == [True, False, False]
    assert first is not None
    assert second is not None
    assert third is not None
    assert third == await driver.observe(plan.ref)
    assert replace(first, usage=None) == replace(second, usage=None) == replace(third, usage=None)
    assert third.usage is not None
    await deleted(driver, plan)


async def test_what_a_machine_was_given_since_it_was_seen_is_told_by_the_next_look(
    driver: LibvirtDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where its host, which tells of that too, has much else to tell."""
    monkeypatch.setattr(driver._connection, "_news", lambda *_: None)
    plan = await running(driver)
    assert await driver.observe(plan.ref) is not None
    await driver.resize(replace(plan, volumes=(Volume("data", 64),)))
    told = await seen(driver, plan)
    assert told is not None
    assert [each.name for each in told.volumes] == ["data"]
    await deleted(driver, plan)


async def test_what_was_done_for_a_guest_since_it_was_seen_is_told_by_the_next_look(
    driver: LibvirtDriver,
) -> None:
    """Who hears of it as it was before sends the request of its hook once more."""
    plan = await running(driver)
    assert await driver.observe(plan.ref) is not None
    ran = Ran(PRE_START, "digest", 0)
    await driver.note_ran(plan.ref, ran)
    told = await seen(driver, plan)
    assert told is not None
    assert told.ran == (ran,)
    await driver.observe(plan.ref)
    await driver.forget_ran(plan.ref, PRE_START)
    told = await seen(driver, plan)
    assert told is not None
    assert told.ran == ()
    await deleted(driver, plan)


async def test_the_first_disk_of_a_machine_that_is_only_measured_is_no_volume(
    driver: LibvirtDriver,
) -> None:
    """Nor is that of its first instructions: what either takes is not told by its target."""
    plan = await running(driver)
    await seen(driver, plan)
    await driver.observe(plan.ref)
    measured = await seen(driver, plan)
    assert measured is not None
    assert measured.usage is not None
    assert measured.usage.disk_mib is not None
    assert measured.usage.volumes_mib == ()
    await deleted(driver, plan)


async def test_one_that_ended_or_was_edited_since_is_read(
    driver: LibvirtDriver, host: LibvirtDaemon
) -> None:
    """The one shows in what all guests use, of the other there are news."""
    ended, edited = await running(driver), await running(driver)
    with domain_of(host, ended) as domain:
        domain.destroy()
    with domain_of(host, edited) as domain:
        text = domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE)
        domain.connect().defineXML(text.replace("<on_crash>destroy", "<on_crash>restart"))
    gone = await seen(driver, ended)
    assert gone is not None
    assert gone.power is Power.OFF

    async def is_noticed() -> bool:
        found = await seen(driver, edited)
        return found is not None and found.drifted is not None

    await eventually(is_noticed, "the edit is noticed", 10)
    for plan in (ended, edited):
        await deleted(driver, plan)


async def test_one_call_for_each_look_measures_all_machines(
    driver: LibvirtDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many run or are stopped, and however often it looks: none is asked alone."""
    plans = [await running(driver)]
    calls = counted_calls(monkeypatch)
    for alone in range(1, 4):
        await driver.machines("far")
        assert calls == {"getAllDomainStats": alone}
    plans += [await running(driver), await running(driver), machine()]
    await created(driver, plans[-1])
    calls.clear()
    for together in range(1, 6):
        found = {each.uid: each for each in await driver.machines("far")}
        assert calls == {"getAllDomainStats": together}
        assert found.keys() == {plan.ref.uid for plan in plans}
    *guests, stopped = plans
    assert all(found[plan.ref.uid].usage is not None for plan in guests)
    assert found[stopped.ref.uid].usage is None
    for plan in plans:
        await deleted(driver, plan)


async def test_one_machine_that_cannot_be_understood_hides_no_other(
    driver: LibvirtDriver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Else nobody is told of any machine of the host, for as long as there is that one."""
    good, odd = machine(), machine()
    for plan in (good, odd):
        await created(driver, plan)
    real = census.observed

    def seen_oddly(domain: Any, *known: Any, **more: Any) -> Observed:
        if domain.uid == odd.ref.uid:
            raise ValueError("nobody thought of this")
        return real(domain, *known, **more)

    with monkeypatch.context() as patch:
        patch.setattr(census, "observed", seen_oddly)
        assert {each.uid for each in await driver.machines("far")} == {good.ref.uid}
    assert odd.ref.uid in caplog.text
    for plan in (good, odd):
        await deleted(driver, plan)


async def test_one_whose_mark_somebody_spoiled_hides_no_other(
    driver: LibvirtDriver, host: LibvirtDaemon
) -> None:
    """A person may edit a definition by hand."""
    good, odd = machine(), machine()
    for plan in (good, odd):
        await created(driver, plan)
    with domain_of(host, odd) as domain:
        kind, flag = libvirt.VIR_DOMAIN_METADATA_ELEMENT, libvirt.VIR_DOMAIN_AFFECT_CONFIG
        text = domain.metadata(kind, NAMESPACE, flag)
        domain.setMetadata(
            kind, f'<machine uid="{odd.ref.uid}" disk="all"/>', PREFIX, NAMESPACE, flag
        )
        await eventually(lambda: only(driver, good), "the other one is told", 10)
        domain.setMetadata(kind, text, PREFIX, NAMESPACE, flag)
    for plan in (good, odd):
        await deleted(driver, plan)


async def only(driver: LibvirtDriver, plan: MachinePlan) -> bool:
    """Say whether a look at all tells of this one alone."""
    return [each.uid for each in await driver.machines("far")] == [plan.ref.uid]
