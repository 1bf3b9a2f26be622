"""Volumes of a real host that were one machine's and are another's, and what guests write there."""

import json
import subprocess
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast
from xml.etree import ElementTree as ET

import libvirt
import pytest

from conformance.drivers.libvirt import bench
from conformance.test_snapshots import Snapshotting, removed, restored, taken
from conformance.under_test import Bench, FullDriver
from libvirt_daemon import shared_daemon
from novacron.core.errors import Rejected
from novacron.core.machine import MachinePlan, Power
from novacron.core.migration import LiveMigration
from novacron.core.snapshot import RestoreOrder, SnapshotOrder, Snapshots
from novacron.core.volume import Access, KeptVolume, Volume, volume_id
from novacron.drivers.libvirt.belongings import Belongings
from novacron.drivers.libvirt.domain import domain_uuid
from novacron.drivers.libvirt.snapshot_disks import Disk, held_bytes, is_within

ID = volume_id("web", "data", "uid-1")
FAST = Volume("data", 16, storage_class="fast")
SHARED = Volume("data", 16, storage_class="common", access=Access.MANY)
MIB = 1024 * 1024
FIRST = SnapshotOrder("first")


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


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """The file of the volume."""
    return tmp_path / "fast" / f"volume-default.{ID}.qcow2"


async def given(
    host: Bench, driver: FullDriver, plan: MachinePlan, volumes: Iterable[Volume]
) -> None:
    """Have a machine have these volumes."""
    order = partial(driver.resize, replace(plan, volumes=tuple(volumes)))
    await host.insist(order, driver, plan.ref)


def write(disk: Path, pattern: int) -> None:
    """Fill the volume, as its guest would."""
    order = f"write -P {pattern} 0 1M"
    subprocess.run(["qemu-io", "-c", order, disk], check=True, capture_output=True)


def holds(disk: Path, pattern: int) -> bool:
    """Say whether the volume has what was written."""
    command = ["qemu-io", "-c", f"read -P {pattern} 0 1M", disk]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def within(disk: Path) -> list[str]:
    """Return the snapshots within the volume."""
    order = ["qemu-img", "info", "-U", "--output=json", disk]
    told = subprocess.run(order, check=True, capture_output=True)
    return [each["name"] for each in json.loads(told.stdout).get("snapshots", ())]


async def test_what_another_machine_has_by_now_is_not_rolled_back_nor_taken_from_it(
    host: Bench, driver: Snapshotting, disk: Path
) -> None:
    """It wrote there since; and the snapshot within it is still the first machine's."""
    web, db = host.plan(volumes=(FAST,)), host.plan("uid-2", name="db")
    heirs = (replace(FAST, existing=ID),)
    await host.created(driver, web)
    write(disk, 1)
    await taken(host, driver, web, FIRST)
    await given(host, driver, web, ())
    await host.created(driver, db)
    await given(host, driver, db, heirs)
    write(disk, 2)

    with pytest.raises(Rejected, match=r"is db's now") as refused:
        await restored(host, driver, web, RestoreOrder("first", "r1"))
    assert refused.value.reason == "VolumeInUse"
    assert holds(disk, 2)

    with pytest.raises(Rejected, match="choose another name") as refused:
        await taken(host, driver, db, FIRST)
    assert refused.value.reason == "SnapshotExists"
    assert within(disk) == ["first"]

    await given(host, driver, db, ())
    with pytest.raises(Rejected, match=r"is heir's now"):
        await restored(host, driver, web, RestoreOrder("first", "r2", {ID: "heir"}))
    assert holds(disk, 2)
    await restored(host, driver, web, RestoreOrder("first", "r3"))
    assert holds(disk, 1)

    await given(host, driver, web, ())
    await given(host, driver, db, heirs)
    await removed(host, driver, web, "first")
    assert within(disk) == ["first"]


async def test_a_guest_that_loses_a_snapshot_leaves_anothers_of_the_same_name(
    host: Bench, driver: Snapshotting, disk: Path
) -> None:
    """Which came with a volume, after its own was taken without that."""
    web, db = host.plan(volumes=(FAST,)), host.plan("uid-2", name="db")
    await host.created(driver, web)
    await taken(host, driver, web, FIRST)
    await given(host, driver, web, ())
    await host.created(driver, db)
    await host.after(driver.set_power(db.ref, Power.ON), driver, db.ref)
    await taken(host, driver, db, FIRST)
    await given(host, driver, db, (replace(FAST, existing=ID),))
    await removed(host, driver, db, "first")
    assert within(disk) == ["first"]


async def test_a_machine_that_shares_a_raw_disk_has_no_snapshots(
    host: Bench, driver: Snapshotting
) -> None:
    """There is no room in it for one, and half of a machine is not brought back."""
    plan = host.plan(volumes=(SHARED,))
    await host.created(driver, plan)
    with pytest.raises(Rejected, match="vdc is raw") as refused:
        await taken(host, driver, plan, FIRST)
    assert refused.value.reason == "DiskWithoutSnapshots"


def size_seen(plan: MachinePlan, target: str) -> int:
    """Return how many MiB the guest of a machine sees a disk have."""
    connection = libvirt.open(shared_daemon().uri)
    try:
        guest = connection.lookupByUUIDString(domain_uuid(plan.ref.uid))
        return int(guest.blockInfo(target)[0]) // MIB
    finally:
        connection.close()


async def test_each_guest_sees_how_a_volume_has_grown_that_several_write(
    host: Bench, driver: Snapshotting
) -> None:
    """For the second one the file is long enough already, which its guest does not know."""
    web = host.plan(volumes=(SHARED,))
    db = host.plan("uid-2", name="db", volumes=(replace(SHARED, existing=ID),))
    for plan in (web, db):
        await host.created(driver, plan)
        await host.after(driver.set_power(plan.ref, Power.ON), driver, plan.ref)
    for plan in (web, db):
        await given(host, driver, plan, [replace(each, size_mib=24) for each in plan.volumes or ()])
        assert size_seen(plan, "vdc") == 24


def forged(directory: Path) -> tuple[Path, bytes]:
    """Have a guest write to its raw volume that it is a disk of a terabyte; return it and that."""
    made, file = directory / "forged", directory / "common" / f"volume-default.{ID}.raw"
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", made, "1T"], check=True)
    header = made.read_bytes()[:4096]
    with file.open("r+b") as raw:
        raw.write(header)
    return file, header


async def test_a_raw_volume_is_as_large_as_its_file_whatever_its_guest_wrote(
    host: Bench, driver: Snapshotting, tmp_path: Path
) -> None:
    """Else any guest could fill a storage class with nothing, and its own volume never grew."""
    plan = host.plan(volumes=(SHARED,))
    await host.created(driver, plan)
    file, header = forged(tmp_path)
    assert await driver.kept_volumes(host.host) == []
    await given(host, driver, plan, (replace(SHARED, size_mib=24),))
    assert file.read_bytes() == header.ljust(24 * MIB, b"\0")
    await host.after(driver.delete(plan.ref), driver, plan.ref)
    assert await driver.kept_volumes(host.host) == [KeptVolume("default", ID, 24, "common")]


async def test_a_raw_volume_travels_as_large_as_its_file_whatever_its_guest_wrote(
    host: Bench, driver: Snapshotting, tmp_path: Path
) -> None:
    """Else its copy on another host would be as large as the guest says, and a guest may lie."""
    plan = host.plan(volumes=(SHARED,))
    await host.created(driver, plan)
    file, _ = forged(tmp_path)
    assert isinstance(driver, LiveMigration)
    disks = Belongings.of((await driver.pack(plan.ref)).contents).disks
    assert [each.capacity for each in disks if each.volume == file.name] == [16 * MIB]


def test_a_raw_disk_is_not_searched_for_snapshots() -> None:
    """What is on it is its guest's, which may have written a table without an end."""
    unread = cast("libvirt.virStorageVol", object())
    raw = Disk("vdc", "raw", "virtio-disk2", "common/board.raw", unread, ET.Element("disk"))
    assert not is_within(raw, "first")
    assert held_bytes(raw, "first") == 0
