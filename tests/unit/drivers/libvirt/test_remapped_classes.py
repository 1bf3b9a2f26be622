"""Storage classes that got another pool, on a real host: what machines have stays what it is."""

import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import libvirt
import pytest

from guest_images import located
from libvirt_daemon import LibvirtDaemon, add_pool
from novacron.core.errors import Rejected
from novacron.core.machine import MachinePlan, Observed, Power
from novacron.core.snapshot import SnapshotOrder
from novacron.core.volume import Attachment, Volume, volume_id
from novacron.drivers.libvirt import ClassPool, LibvirtDriver, LibvirtHost
from novacron.drivers.libvirt.belongings import Belongings
from novacron.drivers.libvirt.disk_files import BASE
from novacron.drivers.libvirt.domain import root_volume
from unit.drivers.libvirt.hosts import created, deleted, domain_of, eventually, machine

DATA, LOGS = Volume("data", 16, storage_class="fast"), Volume("logs", 16, storage_class="fast")
OWN = Volume("data", 16)


@pytest.fixture
def pools(host: LibvirtDaemon, tmp_path: Path) -> Iterator[dict[str, libvirt.virStoragePool]]:
    """The pool that the class had, and the one that it has now."""
    connection = libvirt.open(host.uri)
    made = {name: add_pool(connection, name, tmp_path / name) for name in ("ssd", "ssd2")}
    yield made
    for pool in made.values():
        pool.destroy()
        pool.undefine()
    connection.close()


@asynccontextmanager
async def declared(
    host: LibvirtDaemon, fast: str, own: str = "novacron"
) -> AsyncIterator[LibvirtDriver]:
    """A driver for the host as its owner declares it at one time."""
    classes = {"fast": ClassPool(fast), "fine": ClassPool(fast), "slow": ClassPool("ssd2")}
    driver = LibvirtDriver(LibvirtHost("far", host.uri, own, storage_classes=classes), located)
    yield driver
    await driver.close()


async def has(driver: LibvirtDriver, plan: MachinePlan, *volumes: Volume) -> Observed:
    """Have a machine have these volumes, and return how it is then."""
    await driver.resize(replace(plan, volumes=volumes))
    seen = await driver.observe(plan.ref)
    assert seen is not None
    return seen


def told(seen: Observed) -> list[tuple[str, int, Attachment]]:
    """Return what is told of a machine's volumes."""
    return [(each.name, each.size_mib, each.attachment) for each in seen.volumes]


def disk(host: LibvirtDaemon, plan: MachinePlan, name: str) -> Path:
    """Return the file that a guest has as a volume, or will have."""
    with domain_of(host, plan) as domain:
        tree = ET.fromstring(domain.XMLDesc())
        connection = domain.connect()
        for each in tree.findall("devices/disk"):
            source = each.find("source")
            if source is not None and each.findtext("serial") == name:
                pool = connection.storagePoolLookupByName(source.get("pool") or "")
                return Path(pool.storageVolLookupByName(source.get("volume") or "").path())
    raise AssertionError(f"there is no disk {name}")


def write(file: Path) -> None:
    """Fill a volume, as its guest would."""
    subprocess.run(["qemu-io", "-c", "write -P 7 0 1M", file], check=True, capture_output=True)


def is_written(file: Path) -> bool:
    """Say whether a volume has what was written."""
    command = ["qemu-io", "-r", "-U", "-c", "read -P 7 0 1M", file]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


@pytest.mark.usefixtures("pools")
@pytest.mark.parametrize("power", list(Power))
async def test_a_volume_stays_in_the_pool_that_its_class_had(
    host: LibvirtDaemon, tmp_path: Path, power: Power
) -> None:
    """An empty one of its name in the other pool would pass for it, under a running guest too."""
    plan = replace(machine(), volumes=(DATA,))
    async with declared(host, "ssd") as driver:
        await created(driver, plan)
        write(disk(host, plan, "data"))
        await driver.set_power(plan.ref, power)
    async with declared(host, "ssd2") as driver:
        seen = await has(driver, plan, replace(DATA, size_mib=24), LOGS)
        attached = Attachment.ATTACHED
        assert told(seen) == [("data", 24, attached), ("logs", 16, attached)]
        assert is_written(disk(host, plan, "data"))
        assert disk(host, plan, "logs").parent == tmp_path / "ssd2", "new ones are made there"
        await driver.set_power(plan.ref, Power.OFF, force=True)
        seen = await has(driver, plan, replace(DATA, size_mib=24))
        assert told(seen)[0] == ("data", 24, attached)
        assert is_written(disk(host, plan, "data"))
        await deleted(driver, plan)


@pytest.mark.usefixtures("pools")
async def test_a_volume_stays_in_the_pool_that_was_the_hosts_own(host: LibvirtDaemon) -> None:
    """Its guest runs, so that nobody misses the first disk yet."""
    plan = replace(machine(), volumes=(OWN,))
    async with declared(host, "ssd2", own="ssd") as driver:
        await created(driver, plan)
        write(disk(host, plan, "data"))
        await driver.set_power(plan.ref, Power.ON)
    async with declared(host, "ssd2") as driver:
        seen = await has(driver, plan, replace(OWN, size_mib=24))
        assert told(seen) == [("data", 24, Attachment.ATTACHED)]
        assert is_written(disk(host, plan, "data"))
    async with declared(host, "ssd2", own="ssd") as driver:
        await deleted(driver, plan)


@pytest.mark.usefixtures("pools")
async def test_a_first_disk_stays_where_another_host_has_its_own(
    host: LibvirtDaemon, tmp_path: Path
) -> None:
    """Its host has another pool by now, and the one that it left clears up what it has of it."""
    plan = machine()
    async with declared(host, "ssd2", own="ssd") as driver:
        await created(driver, plan)
        await driver.set_power(plan.ref, Power.ON)
    async with declared(host, "ssd2") as driver:
        luggage = await driver.pack(plan.ref)
    with domain_of(host, plan) as domain:
        domain.destroy()
        domain.undefine()
    root = tmp_path / "ssd" / root_volume(plan.ref.uid)
    async with declared(host, "ssd2", own="ssd") as driver:
        await driver.clear_out(plan.ref, luggage, was_home=True)
        assert root.exists()
        await deleted(driver, plan)
    assert not root.exists()


@pytest.mark.usefixtures("pools")
async def test_no_first_disk_goes_with_its_snapshots_and_without_what_it_is_on_top_of(
    host: LibvirtDaemon,
) -> None:
    """That is where the disk was made, and is looked for where the host has its disks now."""
    plan = machine()
    async with declared(host, "ssd2", own="ssd") as driver:
        await created(driver, plan)
        await driver.take_snapshot(plan.ref, SnapshotOrder("one"))

        async def is_taken() -> bool:
            return bool(await driver.snapshots(plan.ref))

        await eventually(is_taken, "it is taken")
    async with declared(host, "ssd2") as driver:
        with pytest.raises(Rejected, match="move the file there") as refused:
            await driver.pack(plan.ref)
        assert refused.value.reason == "DiskLost"
    async with declared(host, "ssd2", own="ssd") as driver:
        assert BASE in {
            each.target for each in Belongings.of((await driver.pack(plan.ref)).contents).disks
        }
        await deleted(driver, plan)


async def test_a_volume_that_was_moved_to_the_other_pool_is_found_there(
    host: LibvirtDaemon, tmp_path: Path, pools: dict[str, libvirt.virStoragePool]
) -> None:
    """By its owner, while the machine was off; and nowhere it is made anew."""
    plan = replace(machine(), volumes=(DATA,))
    async with declared(host, "ssd") as driver:
        await created(driver, plan)
        write(file := disk(host, plan, "data"))
    async with declared(host, "ssd2") as driver:
        file.rename(tmp_path / file.name)
        _ = [pool.refresh() for pool in pools.values()]
        with pytest.raises(Rejected) as refused:
            await has(driver, plan, DATA)
        assert refused.value.reason == "VolumeLost"
        (tmp_path / file.name).rename(tmp_path / "ssd2" / file.name)
        _ = [pool.refresh() for pool in pools.values()]
        assert told(await has(driver, plan, DATA)) == [("data", 16, Attachment.ATTACHED)]
        assert disk(host, plan, "data").parent == tmp_path / "ssd2"
        assert is_written(disk(host, plan, "data"))
        await deleted(driver, plan)


@pytest.mark.usefixtures("pools")
async def test_no_other_volume_gets_the_name_of_one_that_is_kept(host: LibvirtDaemon) -> None:
    """Both would be known by one id, which no status can have twice; with that gone it can."""
    plan = replace(machine(), volumes=(DATA,))
    slow = replace(DATA, storage_class="slow")
    async with declared(host, "ssd") as driver:
        await created(driver, plan)
        before = await has(driver, plan)
        with pytest.raises(Rejected, match="give volume data another name") as refused:
            await has(driver, plan, slow)
        assert refused.value.reason == "VolumeExists"
        assert await driver.observe(plan.ref) == before
        one = volume_id(plan.ref.name, "data", plan.ref.uid)
        await driver.delete_volume("far", plan.ref.namespace, one)
        assert told(await has(driver, plan, slow)) == [("data", 16, Attachment.ATTACHED)]
        await deleted(driver, plan)


@pytest.mark.usefixtures("pools")
async def test_a_volume_goes_with_its_machine_from_the_pool_that_its_class_had(
    host: LibvirtDaemon,
) -> None:
    """No machine tells any more that it was there."""
    plan = replace(machine(), volumes=(DATA,))
    async with declared(host, "ssd") as driver:
        _ = [facts async for facts in driver.hosts()]
        await created(driver, plan)
        file = disk(host, plan, "data")
    async with declared(host, "ssd2") as driver:
        await deleted(driver, plan)
        assert file.exists()
        await driver.reclaim(plan.ref, plan.volumes or ())
        assert not file.exists()


@pytest.mark.usefixtures("pools")
async def test_a_volume_that_was_deleted_is_not_known_beside_the_one_of_its_name(
    host: LibvirtDaemon,
) -> None:
    """Whose class has the same pool, so that the new file is where the old one was."""
    plan = replace(machine(), volumes=(DATA,))
    fine = replace(DATA, storage_class="fine")
    async with declared(host, "ssd") as driver:
        await created(driver, plan)
        await has(driver, plan)
        one = volume_id(plan.ref.name, "data", plan.ref.uid)
        await driver.delete_volume("far", plan.ref.namespace, one)
        for size_mib in (16, 24):
            seen = await has(driver, plan, replace(fine, size_mib=size_mib))
            assert told(seen) == [("data", size_mib, Attachment.ATTACHED)]
        await deleted(driver, plan)


async def test_nobody_says_of_a_pool_that_is_away_what_is_in_it(
    host: LibvirtDaemon, tmp_path: Path, pools: dict[str, libvirt.virStoragePool]
) -> None:
    """A volume of the same name elsewhere would be the machine's, until the pool is back."""
    plan = replace(machine(), volumes=(DATA,))
    async with declared(host, "ssd") as driver:
        await created(driver, plan)
        write(file := disk(host, plan, "data"))
        await has(driver, plan)
        pools["ssd"].destroy()
        file.parent.rename(tmp_path / "away")
        with pytest.raises(Rejected) as refused:
            await has(driver, plan, replace(DATA, storage_class="slow"))
        assert refused.value.reason == "PoolUnusable"
        (tmp_path / "away").rename(file.parent)
        assert told(await has(driver, plan, DATA)) == [("data", 16, Attachment.ATTACHED)]
        assert is_written(disk(host, plan, "data"))
        await deleted(driver, plan)
