"""A libvirt daemon for the tests of each module here."""

from collections.abc import AsyncIterator, Iterator

import pytest

from libvirt_daemon import LibvirtDaemon, own_daemon
from novacron.drivers.libvirt import LibvirtDriver
from unit.drivers.libvirt.hosts import driver_for


@pytest.fixture(scope="module")
def host() -> Iterator[LibvirtDaemon]:
    """A host that the tests of one module may break, each mending it again."""
    with own_daemon() as daemon:
        yield daemon


@pytest.fixture
async def driver(host: LibvirtDaemon) -> AsyncIterator[LibvirtDriver]:
    """A driver that hears of changes."""
    connected = driver_for(host)
    connected.on_change(lambda _: None)
    yield connected
    await connected.close()
