"""The book of a machine's snapshots, when somebody put them away and died."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import libvirt
import pytest

from conformance.drivers.libvirt import bench
from conformance.test_snapshots import Snapshotting, taken
from conformance.under_test import Bench
from libvirt_daemon import shared_daemon
from novacron.core.errors import OutOfCapacity
from novacron.core.snapshot import SnapshotOrder, Snapshots
from novacron.drivers.libvirt import snapshots
from novacron.drivers.libvirt.domain import domain_uuid, volume_prefix

# So many that libvirt, which lists them in no order, has one before the one it came after.
BEFORE = ("one", "two", "three", "four", "five")


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Bench]:
    """One real host."""
    async with bench(tmp_path) as found:
        yield found


def connect(host: Bench) -> Snapshotting:
    """Return a driver that knows nothing of earlier ones."""
    driver = host.connect()
    assert isinstance(driver, Snapshots)
    return driver  # type: ignore[return-value]


def in_the_book(connection: libvirt.virConnect, uid: str) -> set[str]:
    """Return the names of all snapshots that can be had again from beside the disks."""
    pool = connection.storagePoolLookupByName("novacron")
    (book,) = (name for name in pool.listVolumes() if name.startswith(f"{volume_prefix(uid)}snap"))
    content, stream = bytearray(), connection.newStream()
    pool.storageVolLookupByName(book).download(stream, 0, 0)
    stream.recvAll(lambda _, data, into: into.extend(data), content)
    stream.finish()
    return {name for name, _, _ in json.loads(content)}


async def test_a_new_snapshot_does_not_push_those_out_that_only_the_book_knows(
    host: Bench,
) -> None:
    """As after a move during which everything died: libvirt was told to forget them."""
    plan, driver = host.plan(), connect(host)
    await host.created(driver, plan)
    for name in BEFORE:
        await taken(host, driver, plan, SnapshotOrder(name))
    outside = libvirt.open(shared_daemon().uri)
    domain = outside.lookupByUUIDString(domain_uuid(plan.ref.uid))
    for record in domain.listAllSnapshots():
        record.delete(libvirt.VIR_DOMAIN_SNAPSHOT_DELETE_METADATA_ONLY)
    assert domain.snapshotNum() == 0
    await taken(host, connect(host), plan, SnapshotOrder("new"))
    assert in_the_book(outside, plan.ref.uid) == {*BEFORE, "new"}
    assert {each.getName() for each in domain.listAllSnapshots()} == {*BEFORE, "new"}
    del domain, record
    outside.close()


async def test_a_book_that_somebody_did_not_finish_is_put_right(host: Bench) -> None:
    """One who died left two of them, or one without the last snapshot."""
    plan, driver = host.plan(), connect(host)
    await host.created(driver, plan)
    await taken(host, driver, plan, SnapshotOrder("one"))
    outside = libvirt.open(shared_daemon().uri)
    pool = outside.storagePoolLookupByName("novacron")
    older = volume_prefix(plan.ref.uid) + "snapshots-000000000000.json"
    (book,) = (name for name in pool.listVolumes() if "-snapshots-" in name)
    pool.createXMLFrom(
        f"<volume><name>{older}</name><capacity>0</capacity></volume>",
        pool.storageVolLookupByName(book),
    )
    pool.storageVolLookupByName(book).delete()
    await taken(host, driver, plan, SnapshotOrder("two"))
    (book,) = (name for name in pool.listVolumes() if "-snapshots-" in name)
    pool.storageVolLookupByName(book).delete()
    for _ in range(40):
        if set(await connect(host).snapshots(plan.ref)):
            await host.pass_time(timedelta(milliseconds=100))
        if [name for name in pool.listVolumes() if "-snapshots-" in name]:
            break
    assert in_the_book(outside, plan.ref.uid) == {"one", "two"}
    del pool
    outside.close()


async def test_a_book_that_cannot_be_written_hides_no_snapshot(
    host: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are told of, and it is not tried over and over."""
    plan, driver = host.plan(), connect(host)
    await host.created(driver, plan)
    await taken(host, driver, plan, SnapshotOrder("one"))
    tried: list[object] = []

    def full(*what: object) -> None:
        tried.append(what)
        raise OutOfCapacity("no space is left")

    monkeypatch.setattr(snapshots, "keep", full)
    other = connect(host)
    for _ in range(5):
        assert [each.name for each in await other.snapshots(plan.ref)] == ["one"]
        await host.pass_time(timedelta(milliseconds=100))
    assert len(tried) == 1


async def test_a_book_that_was_made_and_not_written_is_written(host: Bench) -> None:
    """Its daemon died in between: it has the name of what it should say, and says nothing."""
    plan, driver = host.plan(), connect(host)
    await host.created(driver, plan)
    await taken(host, driver, plan, SnapshotOrder("one"))
    outside = libvirt.open(shared_daemon().uri)
    pool = outside.storagePoolLookupByName("novacron")
    (book,) = (name for name in pool.listVolumes() if "-snapshots-" in name)
    older = volume_prefix(plan.ref.uid) + "snapshots-000000000000.json"
    volume = pool.storageVolLookupByName(book)
    pool.createXMLFrom(f"<volume><name>{older}</name><capacity>0</capacity></volume>", volume)
    length = volume.info()[1]
    volume.delete()
    pool.createXML(
        f"<volume><name>{book}</name><capacity>{length}</capacity>"
        "<allocation>0</allocation><target><format type='raw'/></target></volume>"
    )
    for _ in range(40):
        await connect(host).snapshots(plan.ref)
        await host.pass_time(timedelta(milliseconds=100))
        if older not in pool.listVolumes():
            break
    assert in_the_book(outside, plan.ref.uid) == {"one"}
    del pool, volume
    outside.close()
