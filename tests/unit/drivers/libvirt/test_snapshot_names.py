"""Snapshots called by a number, which QEMU takes for the number of another one."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import libvirt
import pytest

from conformance.drivers.libvirt import bench
from conformance.test_snapshots import Snapshotting, restored, taken, there
from conformance.under_test import Bench
from libvirt_daemon import shared_daemon
from novacron.core.errors import Rejected
from novacron.core.snapshot import RestoreOrder, SnapshotOrder, Snapshots
from novacron.core.volume import Volume
from novacron.drivers.libvirt.domain import domain_uuid
from novacron.drivers.libvirt.snapshot_record import Note, written_anew
from unit.drivers.libvirt.test_taken_over_volumes import holds, write

FAST = Volume("data", 16, storage_class="fast")


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Bench]:
    """One real host."""
    async with bench(tmp_path) as found:
        yield found


@pytest.fixture
def driver(host: Bench) -> Snapshotting:
    """A connection to it."""
    connected = host.connect()
    assert isinstance(connected, Snapshots)
    return cast("Snapshotting", connected)


def taken_when_it_was_allowed(uid: str, name: str) -> None:
    """Have the machine keep a snapshot with a name that an earlier operator let through."""
    connection = libvirt.open(shared_daemon().uri)
    domain = connection.lookupByUUIDString(domain_uuid(uid))
    domain.snapshotCreateXML(written_anew(name, Note(made=True)), 0)
    del domain
    connection.close()


async def test_no_snapshot_is_taken_that_is_called_by_a_number(
    host: Bench, driver: Snapshotting
) -> None:
    """Whoever asks for it: the API, or something that goes round it."""
    plan = host.plan()
    await host.created(driver, plan)
    with pytest.raises(Rejected, match="not only digits") as refused:
        await taken(host, driver, plan, SnapshotOrder("1"))
    assert refused.value.reason == "SnapshotNameAmbiguous"
    await taken(host, driver, plan, SnapshotOrder("1a"))
    assert set(await there(driver, plan.ref)) == {"1a"}


async def test_nobody_goes_back_to_another_snapshot_than_was_asked_for(
    host: Bench, driver: Snapshotting, tmp_path: Path
) -> None:
    """QEMU would: the first one within a disk has the number 1, whatever it is called."""
    plan = host.plan(volumes=(FAST,))
    await host.created(driver, plan)
    (disk,) = (tmp_path / "fast").glob("volume-*.qcow2")
    write(disk, 1)
    await taken(host, driver, plan, SnapshotOrder("first"))
    write(disk, 2)
    taken_when_it_was_allowed(plan.ref.uid, "1")
    write(disk, 3)
    with pytest.raises(Rejected, match="number of snapshot first within disk") as refused:
        await restored(host, driver, plan, RestoreOrder("1", "r1"))
    assert refused.value.reason == "SnapshotNameAmbiguous"
    assert holds(disk, 3)
    await restored(host, driver, plan, RestoreOrder("first", "r2"))
    assert holds(disk, 1)


async def test_a_number_that_is_no_other_snapshots_is_gone_back_to(
    host: Bench, driver: Snapshotting, tmp_path: Path
) -> None:
    """It may be its own, or too high for any."""
    plan = host.plan(volumes=(FAST,))
    await host.created(driver, plan)
    (disk,) = (tmp_path / "fast").glob("volume-*.qcow2")
    for pattern, name in enumerate(("1", "20261119"), 1):
        write(disk, pattern)
        taken_when_it_was_allowed(plan.ref.uid, name)
    write(disk, 3)
    await restored(host, driver, plan, RestoreOrder("20261119", "r1"))
    assert holds(disk, 2)
    await restored(host, driver, plan, RestoreOrder("1", "r2"))
    assert holds(disk, 1)
