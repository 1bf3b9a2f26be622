"""What a real host tells of storage classes whose pools cannot be used."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import libvirt
import pytest

from conformance.drivers.libvirt import bench
from conformance.under_test import Bench
from libvirt_daemon import shared_daemon
from novacron.core.errors import Rejected
from novacron.core.host import ClassFacts
from novacron.core.volume import Volume

OWN, FAST = Volume("own", 16), Volume("data", 16, storage_class="fast")


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Bench]:
    """One real host."""
    async with bench(tmp_path) as found:
        yield found


@contextmanager
def pool_of(name: str) -> Iterator[libvirt.virStoragePool]:
    """Give somebody else's handle of a pool."""
    connection = libvirt.open(shared_daemon().uri)
    try:
        yield connection.storagePoolLookupByName(name)
    finally:
        connection.close()


@contextmanager
def fast_away(place: Path, *, defined: bool = True) -> Iterator[None]:
    """Have the pool of a class be away, as if its storage were not mounted."""
    aside = place.with_name("aside")
    with pool_of("fast") as pool:
        text = pool.XMLDesc()
        pool.destroy()
        if not defined:
            pool.undefine()
        place.rename(aside)
        try:
            yield
        finally:
            aside.rename(place)
            if not defined:
                pool.connect().storagePoolDefineXML(text).create()


async def fast_of(host: Bench) -> ClassFacts:
    """Return what the host says of one of its classes."""
    [facts] = [each async for each in host.connect().hosts()]
    [fast] = [each for each in facts.classes if each.name == "fast"]
    return fast


@pytest.mark.parametrize("defined", [True, False])
async def test_a_class_whose_pool_is_gone_has_no_room_and_says_why(
    host: Bench, tmp_path: Path, *, defined: bool
) -> None:
    """Machines would go there and wait, though another host had what they ask for."""
    before = await fast_of(host)
    assert before.capacity_mib > 0
    assert before.trouble == ""
    with fast_away(tmp_path / "fast", defined=defined):
        shut = await fast_of(host)
        assert (shut.capacity_mib, shut.storage) == (0, "")
        why = "storage pool fast cannot be started" if defined else "there is no storage pool fast"
        assert why in shut.trouble
    again = await fast_of(host)
    assert (again.capacity_mib, again.trouble) == (before.capacity_mib, "")


async def test_a_class_that_is_away_keeps_no_machine_from_going_with_its_own_volumes(
    host: Bench, tmp_path: Path
) -> None:
    """Only what may be in the pool that cannot be used waits for it."""
    driver, plan = host.connect(), host.plan(volumes=(OWN, FAST))
    await host.created(driver, plan)
    await host.after(driver.delete(plan.ref), driver, plan.ref)
    with fast_away(tmp_path / "fast"):
        for _ in range(2):
            await driver.reclaim(plan.ref, [OWN])
        with pytest.raises(Rejected, match="storage pool fast cannot be started"):
            await driver.reclaim(plan.ref, [FAST])
    one = FAST.id_for(plan.ref.name, plan.ref.uid)
    assert [each.id for each in await driver.kept_volumes(host.host)] == [one]
    await driver.reclaim(plan.ref, [FAST])
    assert await driver.kept_volumes(host.host) == []


async def test_a_kept_volume_is_deleted_by_name_whatever_class_is_away(
    host: Bench, tmp_path: Path
) -> None:
    """And of one that is nowhere else nobody says that it is not there."""
    driver, plan = host.connect(), host.plan(volumes=(OWN, FAST))
    await host.created(driver, plan)
    await host.after(driver.delete(plan.ref), driver, plan.ref)
    own, fast = (each.id_for(plan.ref.name, plan.ref.uid) for each in (OWN, FAST))
    with fast_away(tmp_path / "fast"):
        await driver.delete_volume(host.host, host.namespace, own)
        with pytest.raises(Rejected, match="storage pool fast cannot be started") as refused:
            await driver.delete_volume(host.host, host.namespace, fast)
        assert refused.value.reason == "PoolUnusable"
    assert [each.id for each in await driver.kept_volumes(host.host)] == [fast]
