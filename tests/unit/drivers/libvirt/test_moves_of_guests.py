"""Guests that move, or are about to, with more or less than their machines have."""

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import libvirt
import pytest

from conformance.pairs import Mover, Pair, real
from libvirt_daemon import LibvirtDaemon
from novacron.core.errors import Busy, Rejected
from novacron.core.machine import MachinePlan, Observed, Power
from novacron.core.migration import Destination
from novacron.core.move import MovePolicy
from novacron.core.snapshot import SnapshotOrder
from novacron.core.volume import Attachment, Reclaim, Volume
from novacron.drivers.libvirt import LibvirtDriver, building, snapshotting, volume_plugging
from novacron.drivers.libvirt.arrivals import Reception
from novacron.drivers.libvirt.build import Builder
from novacron.drivers.libvirt.departures import Route
from novacron.drivers.libvirt.domain import root_volume
from novacron.drivers.libvirt.shelf import InStock
from novacron.drivers.libvirt.storage import COMING
from novacron.drivers.libvirt.travel import is_marked_as_sent, marked_as_sent
from rights import ROOT
from unit.drivers.libvirt.hosts import created, deleted, domain_of, eventually, machine

DATA = Volume("data", 16, reclaim=Reclaim.DELETE)
NOWHERE = Route("b", "qemu+tcp://127.0.0.1:1/system", None, False, Reception("", {}, ()))


@pytest.fixture
async def pool(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Pair]:
    """Two hosts, with disks that both reach or of their own."""
    async with real(tmp_path, pool=request.param) as hosts:
        yield hosts


async def lacking_a_volume(
    pair: Pair, here: Mover, patch: pytest.MonkeyPatch
) -> tuple[MachinePlan, MachinePlan]:
    """Have a guest on a that gets a volume with its next restart; return it as it is to be on b."""
    plan = pair.plan("a")
    await here.create(plan)
    await pair.settled(here, "a")
    await here.set_power(plan.ref, Power.ON)
    plan = replace(plan, volumes=(DATA,))
    with patch.context() as full:
        full.setattr(volume_plugging, "_plugged", lambda *_: False)
        await here.resize(plan)
    seen = await pair.settled(here, "a")
    assert seen is not None
    assert [each.attachment for each in seen.volumes] == [Attachment.AWAITS_RESTART]
    return plan, replace(plan, ref=pair.plan("b").ref)


async def moved(pair: Pair, here: Mover, there: Mover, coming: MachinePlan) -> Observed:
    """Move a machine from one host to the other; return how it is there."""
    ref = replace(coming.ref, host="a")
    luggage = await here.pack(ref)
    await here.send(ref, await there.welcome(coming, luggage), MovePolicy())
    assert await pair.settled(here, "a") is None
    await there.arrived(coming, luggage)
    seen = await pair.settled(there, "b")
    assert seen is not None
    return seen


@pytest.mark.skipif(not ROOT, reason="hosts of their own need root")
@pytest.mark.parametrize("pool", ["novacron"], indirect=True)
async def test_a_guest_does_not_leave_a_volume_behind_that_it_gets_with_a_restart(
    pool: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """libvirt copies what the guest has; the machine would have the volume on no host then."""
    here, there = pool.connect("a"), pool.connect("b")
    plan, coming = await lacking_a_volume(pool, here, monkeypatch)
    destination = await there.welcome(coming, await here.pack(plan.ref))
    with pytest.raises(Rejected, match=r"does not see volume data.* restart it first") as refused:
        await here.send(plan.ref, destination, MovePolicy())
    assert refused.value.reason == "VolumesAwaitRestart"
    await here.set_power(plan.ref, Power.OFF, force=True)
    seen = await moved(pool, here, there, coming)
    assert [each.attachment for each in seen.volumes] == [Attachment.ATTACHED]


@pytest.mark.skipif(not ROOT, reason="hosts of their own need root")
@pytest.mark.parametrize("pool", ["shared"], indirect=True)
async def test_a_guest_leaves_nothing_behind_that_both_hosts_see(
    pool: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gets the volume with a restart there."""
    here, there = pool.connect("a"), pool.connect("b")
    _, coming = await lacking_a_volume(pool, here, monkeypatch)
    seen = await moved(pool, here, there, coming)
    assert seen.power is Power.ON
    assert [each.name for each in seen.volumes] == ["data"]


@pytest.mark.skipif(not ROOT, reason="hosts of their own need root")
@pytest.mark.parametrize("pool", ["novacron"], indirect=True)
async def test_what_a_guest_is_told_with_its_next_start_is_where_it_has_gone(pool: Pair) -> None:
    """libvirt copies what the guest has; once off, the machine would count as half made there."""
    here, there = pool.connect("a"), pool.connect("b")
    plan = pool.plan("a")
    await here.create(plan)
    await pool.settled(here, "a")
    await here.set_power(plan.ref, Power.ON)
    await here.resize(replace(plan, user_data="#!/bin/sh\n"))
    coming = replace(plan, ref=pool.plan("b").ref, user_data="#!/bin/sh\n")
    await moved(pool, here, there, coming)
    await there.set_power(coming.ref, Power.OFF, force=True)
    seen = await there.observe(coming.ref)
    assert seen is not None
    assert (seen.changing, seen.abandoned) == (None, False)


async def test_what_a_guest_has_not_let_go_of_is_whole_once_it_has_come(
    driver: LibvirtDriver, host: LibvirtDaemon
) -> None:
    """It came along, and nobody could ever attach or find it who believes the mark beside it."""
    plan = replace(machine(), volumes=(DATA,))
    await created(driver, plan)
    await driver.set_power(plan.ref, Power.ON)
    with domain_of(host, plan) as domain:
        domain.suspend()  # so it lets go of nothing
        without = replace(plan, volumes=())
        await driver.resize(without)
        assert "volume-default" in domain.XMLDesc()
        assert (
            "volume-default"
            not in domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE).partition("<devices>")[2]
        )

        def marks(builder: Builder) -> list[str]:
            return [each for each in builder.pool.names() if each.endswith(COMING)]

        def on_its_way(builder: Builder) -> None:
            for name in [each for each in builder.pool.names() if each.startswith("volume-")]:
                builder.pool.fill(f"{name}{COMING}", 0, [])

        await driver._work(on_its_way)
        assert len(await driver._work(marks)) == 1
        await driver.arrived(without, None)
        assert await driver._work(marks) == []
    await deleted(driver, plan)
    await driver.reclaim(plan.ref, plan.volumes or ())


async def test_a_guest_that_runs_is_taken_in_as_it_runs_whatever_its_definition_says(
    driver: LibvirtDriver, host: LibvirtDaemon
) -> None:
    """Somebody started what a move had left there; only one that stands still is up to be sent."""
    plan = machine()
    await created(driver, plan)
    with domain_of(host, plan) as domain:
        domain.connect().defineXML(marked_as_sent(domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE)))
        domain.create()
        await driver.arrived(plan, None)
        assert domain.state()[0] == libvirt.VIR_DOMAIN_RUNNING
        assert not is_marked_as_sent(domain.XMLDesc())
    await deleted(driver, plan)


async def test_no_move_begins_while_something_is_done_to_snapshots(
    driver: LibvirtDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a restore amid which its records are put away nobody knows later that it was made."""
    plan, may_end = machine(), threading.Event()
    await created(driver, plan)

    def slowly(*_: object) -> None:
        assert may_end.wait(20)

    monkeypatch.setattr(snapshotting, "take", slowly)
    await driver.take_snapshot(plan.ref, SnapshotOrder("one"))
    with pytest.raises(Busy, match="snapshot one"):
        await driver.send(plan.ref, Destination("b", {"route": NOWHERE}), MovePolicy())
    assert await driver.pack(plan.ref) is not None, "what a machine has may be asked at any time"
    may_end.set()
    await eventually(lambda: is_done(driver, plan), "the snapshot is taken", 10)
    await driver.send(plan.ref, Destination("b", {"route": NOWHERE}), MovePolicy())
    await eventually(lambda: has_stayed(driver, plan), "the move fails", 20)
    await deleted(driver, plan)


async def is_done(driver: LibvirtDriver, plan: MachinePlan) -> bool:
    """Say whether nothing is done to the machine."""
    await asyncio.sleep(0)
    return driver._errands.under_way(plan.ref.uid) is None


async def has_stayed(driver: LibvirtDriver, plan: MachinePlan) -> bool:
    """Say whether the machine is no longer on its way."""
    return await driver.movement(plan.ref) is None


async def test_a_disk_that_was_lost_while_its_image_was_brought_is_not_made_anew(
    driver: LibvirtDriver,
) -> None:
    """That a guest had it may have been written down since the machine was asked for."""
    plan = machine()
    await created(driver, plan)
    await driver.set_power(plan.ref, Power.ON)
    await driver.set_power(plan.ref, Power.OFF, force=True)
    image = InStock("image", "qcow2", 1)

    def lost(builder: Builder) -> None:
        builder.pool.remove(root_volume(plan.ref.uid))
        building._completed(builder, plan, image)

    with pytest.raises(Rejected) as refused:
        await driver._work(lost)
    assert refused.value.reason == "DiskLost"
    await deleted(driver, plan)
