"""Moves between hosts that have other pools for the same storage classes."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import libvirt
import pytest

from conformance.pairs import Mover, Pair, real
from fleet import shared_fleet
from novacron.core.machine import MachinePlan, Power
from novacron.core.move import MovePolicy
from novacron.core.volume import Attachment, Reclaim, Volume, volume_id
from novacron.drivers.libvirt.domain import domain_uuid
from novacron.drivers.libvirt.host import ClassPool
from novacron.drivers.libvirt.travel import pools_of
from rights import ROOT

pytestmark = pytest.mark.skipif(not ROOT, reason="hosts of their own need root")

CLASSES = {host: {"fast": ClassPool(f"fast-{host}")} for host in ("a", "b")}
PLAIN = Volume("plain", 16, reclaim=Reclaim.DELETE)
FAST = Volume("fast", 16, storage_class="fast", reclaim=Reclaim.DELETE)


def pool_on(connection: libvirt.virConnect, name: str) -> libvirt.virStoragePool:
    """Make a pool in the host's own view of files, where its guests may read it."""
    place = f"<target><path>/var/lib/libvirt/{name}</path></target>"
    pool = connection.storagePoolDefineXML(f"<pool type='dir'><name>{name}</name>{place}</pool>")
    pool.build()
    pool.create()
    return pool


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    """Two hosts, each with a pool of its own name for fast volumes."""
    async with real(tmp_path, pool="novacron", classes=CLASSES) as hosts:
        opened = [libvirt.open(each.uri) for each in shared_fleet().hosts]
        pools = [pool_on(each, f"fast-{name}") for name, each in zip("ab", opened, strict=True)]
        yield hosts
        for pool in pools:
            pool.refresh()
            for volume in pool.listAllVolumes():
                volume.delete()
            pool.destroy()
            pool.undefine()
        del pool, pools
        for connection in opened:
            connection.close()


async def made(pair: Pair, here: Mover, power: Power) -> tuple[MachinePlan, MachinePlan]:
    """Make the machine on a; return it so, and as it is to be on b, in another order."""
    plan = replace(pair.plan("a"), volumes=(PLAIN, FAST))
    await here.create(plan)
    await pair.settled(here, "a")
    await here.set_power(plan.ref, power)
    await pair.settled(here, "a")
    return plan, replace(pair.plan("b"), volumes=(FAST, PLAIN))


def file_of(plan: MachinePlan, volume: Volume) -> str:
    """Return what the file of a volume is called."""
    return f"volume-default.{volume_id(plan.ref.name, volume.name, plan.ref.uid)}.qcow2"


def pools_on(number: int, uid: str) -> dict[str, str]:
    """Return in which pools libvirt itself says that the volumes of a machine are."""
    connection = libvirt.open(shared_fleet().hosts[number].uri)
    xml = connection.lookupByUUIDString(domain_uuid(uid)).XMLDesc()
    connection.close()
    return {file: pool for file, pool in pools_of(xml).items() if file.startswith("volume-")}


def volumes_on(number: int) -> set[tuple[str, str]]:
    """Return pool and file of every volume on a host."""
    connection = libvirt.open(shared_fleet().hosts[number].uri)
    pools = connection.listAllStoragePools()
    found = {(pool.name(), file) for pool in pools for file in pool.listVolumes()}
    del pools
    connection.close()
    return {(pool, file) for pool, file in found if file.startswith("volume-")}


@pytest.mark.parametrize("power", list(Power))
async def test_volumes_go_into_the_pools_that_the_other_host_has_for_them(
    pair: Pair, power: Power
) -> None:
    """Whatever their order is by now; the guest keeps them, and nothing is left where it was."""
    here, there = pair.connect("a"), pair.connect("b")
    plan, coming = await made(pair, here, power)
    luggage = await here.pack(plan.ref)
    await here.send(plan.ref, await there.welcome(coming, luggage), MovePolicy())
    assert await pair.settled(here, "a") is None
    await there.arrived(coming, luggage)
    seen = await pair.settled(there, "b")
    assert seen is not None
    assert seen.power is power
    assert {each.name: each.attachment for each in seen.volumes} == {
        "plain": Attachment.ATTACHED,
        "fast": Attachment.ATTACHED,
    }
    files = {file_of(plan, PLAIN): "novacron", file_of(plan, FAST): "fast-b"}
    assert pools_on(1, pair.uid) == files
    assert volumes_on(1) == {(pool, file) for file, pool in files.items()}
    await here.clear_out(plan.ref, await there.pack(coming.ref), was_home=True)
    assert volumes_on(0) == set()


async def test_a_move_that_came_to_nothing_leaves_nothing_in_any_pool(pair: Pair) -> None:
    """There never was a domain on the other host that could tell its pools."""
    here, there = pair.connect("a"), pair.connect("b")
    plan, coming = await made(pair, here, Power.OFF)
    before = volumes_on(0)
    await there.welcome(coming, await here.pack(plan.ref))
    assert {pool for pool, _ in volumes_on(1)} == {"novacron", "fast-b"}
    await there.clear_out(coming.ref, await here.pack(plan.ref), was_home=False)
    assert volumes_on(1) == set()
    assert volumes_on(0) == before


async def test_nothing_is_left_in_a_pool_that_a_class_had_before(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its volumes stayed there when the class got another one, and went away with their machine."""
    plan, coming = await made(pair, pair.connect("a"), Power.OFF)
    monkeypatch.setitem(CLASSES, "a", {"fast": ClassPool("novacron-fast")})
    here, there = pair.connect("a"), pair.connect("b")
    await here.send(plan.ref, await there.welcome(coming, await here.pack(plan.ref)), MovePolicy())
    assert await pair.settled(here, "a") is None
    await there.arrived(coming, None)
    assert {pool for pool, _ in volumes_on(0)} == {"fast-a", "novacron"}
    await here.clear_out(plan.ref, await there.pack(coming.ref), was_home=True)
    assert volumes_on(0) == set()
    assert {pool for pool, _ in volumes_on(1)} == {"fast-b", "novacron"}
