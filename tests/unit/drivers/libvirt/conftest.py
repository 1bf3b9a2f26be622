"""A libvirt daemon for the tests of each module here."""

from collections.abc import Iterator

import pytest

from libvirt_daemon import LibvirtDaemon, own_daemon


@pytest.fixture(scope="module")
def host() -> Iterator[LibvirtDaemon]:
    """A host that the tests of one module may break, each mending it again."""
    with own_daemon() as daemon:
        yield daemon
