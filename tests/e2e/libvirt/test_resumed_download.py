"""An operator that is killed while it brings an image: the next one goes on from there."""

import hashlib
import random

import libvirt
import pytest

from e2e.libvirt.conftest import HALT, MIB, LibvirtStage
from novacron.drivers.libvirt import LibvirtHost
from novacron.drivers.libvirt.partial import read_record
from novacron.drivers.libvirt.pool import PART_BYTES, open_pool
from novacron.drivers.libvirt.shelf import Shelf
from operators import eventually

SIZE = PART_BYTES + 16 * MIB
# What is on its way when a connection ends.
SLACK = 6 * MIB


def stored(real: LibvirtStage) -> int:
    """Return how much of an image is on the host for good."""
    connection = libvirt.open(real.daemon.uri)
    try:
        pool = open_pool(connection, LibvirtHost("host", ""))
        records = [read_record(pool, stem) for stem in Shelf(pool.names()).unfinished()]
        return max((each.stored for each in records if each is not None), default=0)
    finally:
        connection.close()


@pytest.mark.full
def test_an_operator_that_is_killed_loses_little_of_a_download(real: LibvirtStage) -> None:
    """The server counts what it gives; the guest that boots from it has the right bytes."""
    images, operator = real.images, real.scene.operator
    content = HALT + random.Random(7).randbytes(SIZE - len(HALT))
    images.ranges, images.stops_at = True, PART_BYTES + 3 * MIB
    url = images.add("large.raw", content)
    real.create("patient", url, checksum=f"sha256:{hashlib.sha256(content).hexdigest()}")
    eventually(lambda: stored(real) >= PART_BYTES, lambda: f"stored: {stored(real)}")
    operator.kill()
    images.stops_at = None
    images.served = 0
    operator.start()
    real.scene.until_running("patient")
    assert images.served < SIZE - PART_BYTES + SLACK
    assert images.started_at[-1] >= PART_BYTES
    assert stored(real) == 0
    names = real.outside.storagePoolLookupByName("novacron").listVolumes()
    assert not [name for name in names if "claim" in name or "taken" in name]
