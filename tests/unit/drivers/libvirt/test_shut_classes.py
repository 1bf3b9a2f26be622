"""What a real host tells of storage classes whose pools cannot be used."""

import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import libvirt
import pytest

from conformance.drivers.libvirt import bench
from conformance.under_test import Bench
from libvirt_daemon import shared_daemon
from novacron.core.host import ClassFacts


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
    with pool_of("fast") as pool:
        text = pool.XMLDesc()
        pool.destroy()
        if not defined:
            pool.undefine()
        shutil.rmtree(tmp_path / "fast")
        shut = await fast_of(host)
        assert (shut.capacity_mib, shut.storage) == (0, "")
        why = "storage pool fast cannot be started" if defined else "there is no storage pool fast"
        assert why in shut.trouble
        (tmp_path / "fast").mkdir()
        if not defined:
            pool.connect().storagePoolDefineXML(text).create()
    again = await fast_of(host)
    assert (again.capacity_mib, again.trouble) == (before.capacity_mib, "")
