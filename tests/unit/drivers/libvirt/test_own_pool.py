"""The pool that a host has for itself, on a real daemon."""

from collections.abc import Callable, Iterator

import libvirt
import pytest

from libvirt_daemon import shared_daemon
from novacron.core.errors import Rejected
from novacron.drivers.libvirt import LibvirtHost
from novacron.drivers.libvirt.pool import Pool, class_pool, open_pool

NAME = "unmounted"
# Nobody can make a directory there.
NOWHERE = "/proc/unmounted"


@pytest.fixture
def connection() -> Iterator[libvirt.virConnect]:
    opened = libvirt.open(shared_daemon().uri)
    yield opened
    for pool in opened.listAllStoragePools():
        if pool.name() == NAME:
            pool.undefine()
    opened.close()


def own_pool(connection: libvirt.virConnect) -> Pool:
    return open_pool(connection, LibvirtHost("host", "qemu:///session", pool=NAME))


def pool_of_a_class(connection: libvirt.virConnect) -> Pool:
    return class_pool(connection, NAME)


@pytest.mark.parametrize("opened", [own_pool, pool_of_a_class])
def test_a_pool_that_cannot_be_started_says_so_and_is_tried_again(
    connection: libvirt.virConnect, opened: Callable[[libvirt.virConnect], Pool]
) -> None:
    """Its storage may be mounted later; until then whoever looks has to know which pool it is."""
    where = f"<target><path>{NOWHERE}</path></target>"
    connection.storagePoolDefineXML(f"<pool type='dir'><name>{NAME}</name>{where}</pool>")
    words = f"storage pool {NAME} cannot be started: .*{NOWHERE}"
    with pytest.raises(Rejected, match=words) as refusal:
        opened(connection)
    assert refusal.value.reason == "PoolUnusable"
    assert refusal.value.again


def test_a_host_without_a_pool_is_looked_at_again(connection: libvirt.virConnect) -> None:
    """Its administrator makes one on the host, of which nobody tells us."""
    with pytest.raises(Rejected, match=f"has no storage pool {NAME}") as refusal:
        own_pool(connection)
    assert refusal.value.reason == "PoolMissing"
    assert refusal.value.again
