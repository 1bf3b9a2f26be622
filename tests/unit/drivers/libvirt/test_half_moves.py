"""Machines whose files came with snapshots, and of which nobody made them the host's own.

Whoever was to do it died, or the host was switched off and is back.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import libvirt
import pytest

from conformance.pairs import Pair, real
from fleet import daemon_of, shared_fleet
from novacron.core.errors import Busy, Rejected
from novacron.core.machine import Power
from novacron.core.move import MovePolicy
from novacron.core.snapshot import RestoreOrder
from novacron.core.volume import Attachment, Reclaim, Volume
from novacron.drivers.libvirt import snapshotting
from novacron.drivers.libvirt.at_rest import MaybeFrozen
from novacron.drivers.libvirt.domain import domain_uuid, root_volume, volume_prefix
from novacron.drivers.libvirt.travel import SENT, is_marked_as_sent
from rights import ROOT
from unit.drivers.libvirt.test_moved_snapshots import (
    SNAPSHOTS,
    Keeper,
    connect,
    definition,
    files,
    is_killed_as_it_sends,
    moved,
    names,
    newer,
    packed,
    snapshotted,
    until,
    with_snapshots,
)

pytestmark = [
    pytest.mark.skipif(not ROOT, reason="hosts of their own need root"),
    pytest.mark.timeout(300),
]


async def sent(pair: Pair, here: Keeper, there: Keeper, into: Path) -> dict[str, str]:
    """Have a machine with snapshots be at host b, where nobody has taken note of it.

    Returns digests of what its guest saw of its disk, now and then.
    """
    await with_snapshots(pair, here)
    digests = snapshotted(0, pair.uid, into)
    luggage = await packed(here, pair.plan("a").ref)
    destination = await there.welcome(newer(pair, "b"), luggage)
    await here.send(pair.plan("a").ref, destination, MovePolicy())
    assert await pair.settled(here, "a") is None
    return digests


def pull_the_plug(pair: Pair) -> None:
    """End whatever is up on host b, as when it is switched off."""
    connection = libvirt.open(shared_fleet().hosts[1].uri)
    connection.lookupByUUIDString(domain_uuid(pair.uid)).destroy()
    connection.close()


@contextmanager
def storage_away() -> Iterator[None]:
    """Have host b be up while its storage is not mounted."""
    host = shared_fleet().hosts[1]
    connection = libvirt.open(host.uri)
    pool = connection.storagePoolLookupByName("novacron")
    path = ET.fromstring(pool.XMLDesc()).findtext("target/path")
    assert path is not None
    inside = ["nsenter", "-t", str(daemon_of(host).pid), "-m"]
    subprocess.run([*inside, "mount", "-t", "tmpfs", "none", path], check=True)
    pool.refresh()
    try:
        yield
    finally:
        subprocess.run([*inside, "umount", path], check=True)
        del pool
        connection.close()


async def test_a_host_whose_storage_comes_later_than_itself_takes_a_machine_in_then(
    tmp_path: Path,
) -> None:
    """Its disk is put on top of what came with it only where it is."""
    async with real(tmp_path, pool="novacron") as pair:
        here, there = connect(pair, "a"), connect(pair, "b")
        before = await sent(pair, here, there, tmp_path)
        pull_the_plug(pair)
        other, ref = connect(pair, "b"), pair.plan("b").ref
        with storage_away():
            for ask in (other.pack(ref), other.set_power(ref, Power.ON)):
                with pytest.raises(Busy, match="its first disk is not there") as told:
                    await ask
                assert told.value.reason == "DiskLost"
        await other.pack(ref)
        seen = await pair.settled(other, "b")
        assert seen is not None
        assert seen.drifted is None
        assert await names(other, ref) == set(SNAPSHOTS)
        assert snapshotted(1, pair.uid, tmp_path) == before


@pytest.mark.parametrize("first", ["look", "start", "pack", "arrive", "make"])
@pytest.mark.parametrize("is_up", [False, True], ids=["off", "up"])
async def test_a_machine_that_nobody_took_in_is_whole_whatever_is_done_first(
    tmp_path: Path, first: str, is_up: bool
) -> None:
    """It is on top of what came with it, and never runs with a file for a disk."""
    async with real(tmp_path, pool="novacron") as pair:
        here, there = connect(pair, "a"), connect(pair, "b")
        before = await sent(pair, here, there, tmp_path)
        if not is_up:
            pull_the_plug(pair)
        other, ref = connect(pair, "b"), pair.plan("b").ref
        seen = await other.observe(ref)
        assert seen is not None
        assert seen.drifted == "a move was given up in the midst of it"
        match first:
            case "look":
                await other.resize(newer(pair, "b"))
            case "start":
                await other.set_power(ref, Power.OFF, force=True)
                await other.set_power(ref, Power.ON)
            case "pack":
                await other.pack(ref)
            case "make":
                await other.create(newer(pair, "b"))
            case "arrive":
                await other.arrived(newer(pair, "b"), None)
        seen = await pair.settled(other, "b")
        assert seen is not None
        assert seen.drifted is None
        assert seen.power is (Power.ON if first == "start" else Power.OFF)
        await other.set_power(ref, Power.OFF, force=True)
        await pair.settled(other, "b")
        assert not [name for name in files(1, pair.uid) if name.endswith(".coming")]
        assert await names(other, ref) == set(SNAPSHOTS)
        found = snapshotted(1, pair.uid, tmp_path)
        assert first == "start" or found == before
        assert {each: found[each] for each in SNAPSHOTS} == {
            each: before[each] for each in SNAPSHOTS
        }
        await other.cancel_move(ref)
        await other.pack(ref)
        assert "base-1.qcow2" in files(1, pair.uid)


async def test_a_volume_that_came_whole_does_not_stay_a_half_one(tmp_path: Path) -> None:
    """Its pool was away while its machine was taken in, so that nobody could say so."""
    async with real(tmp_path, pool="novacron") as pair:
        driver = connect(pair, "b")
        plan = replace(pair.plan("b"), volumes=(Volume("data", 16, reclaim=Reclaim.DELETE),))
        await driver.create(plan)
        await pair.settled(driver, "b")
        connection = libvirt.open(shared_fleet().hosts[1].uri)
        pool = connection.storagePoolLookupByName("novacron")
        (file,) = (name for name in pool.listVolumes() if name.startswith("volume-"))
        half = f"<volume><name>{file}.coming</name><capacity>0</capacity></volume>"
        pool.createXML(half)
        await driver.resize(plan)  # what was seen before is not how it is
        pool.createXML(half)

        async def told() -> Attachment:
            (seen,) = await driver.machines("b")
            return seen.volumes[0].attachment

        assert await told() is Attachment.PENDING
        await driver.resize(plan)
        assert f"{file}.coming" not in pool.listVolumes()
        assert await told() is Attachment.ATTACHED
        await driver.delete(plan.ref)
        await driver.reclaim(plan.ref, plan.volumes)
        del pool
        connection.close()


async def test_what_came_for_a_disk_stays_until_the_disk_is_on_top_of_it(tmp_path: Path) -> None:
    """A move that came to nothing takes back what it lent, and that is nothing of the kind."""
    async with real(tmp_path, pool="novacron") as pair:
        here, there = connect(pair, "a"), connect(pair, "b")
        await sent(pair, here, there, tmp_path)
        pull_the_plug(pair)
        await connect(pair, "b").cancel_move(pair.plan("b").ref)
        assert "base-1.qcow2" in files(1, pair.uid)


async def test_nothing_of_a_forgotten_move_is_taken_for_what_a_disk_came_with(
    tmp_path: Path,
) -> None:
    """It was broken off, its host was deleted and declared again, and the machine comes after all.

    Meanwhile it was elsewhere, and so is on top of another file now.
    """
    async with real(tmp_path, pool="novacron") as pair:
        drivers = {host: connect(pair, host) for host in "ab"}
        await with_snapshots(pair, drivers["a"])
        before = snapshotted(0, pair.uid, tmp_path)
        await moved(pair, drivers, "a", "b")
        await moved(pair, drivers, "b", "a")
        connection = libvirt.open(shared_fleet().hosts[1].uri)
        pool = connection.storagePoolLookupByName("novacron")
        prefix = volume_prefix(pair.uid)
        for name in ("base-2.qcow2", "base-2.qcow2.coming", "base-1.qcow2", "base-1.qcow2.coming"):
            pool.createXML(f"<volume><name>{prefix}{name}</name><capacity>4096</capacity></volume>")
        assert "base-2.qcow2" in files(0, pair.uid)
        await moved(pair, drivers, "a", "b")
        assert {each for each in files(1, pair.uid) if each.startswith("base")} == {"base-1.qcow2"}
        assert snapshotted(1, pair.uid, tmp_path) == before
        del pool
        connection.close()


async def test_who_has_somebody_elses_disk_keeps_what_that_is_on_top_of(tmp_path: Path) -> None:
    """The refusal says to save it, which would be of no use without."""
    async with real(tmp_path, pool="novacron") as pair:
        here, there = connect(pair, "a"), connect(pair, "b")
        await with_snapshots(pair, here)
        connection = libvirt.open(shared_fleet().hosts[1].uri)
        pool = connection.storagePoolLookupByName("novacron")
        theirs = {root_volume(pair.uid), f"{volume_prefix(pair.uid)}base-2.qcow2"}
        for name in theirs:
            pool.createXML(f"<volume><name>{name}</name><capacity>4096</capacity></volume>")
        luggage = await packed(here, pair.plan("a").ref)
        with pytest.raises(Rejected, match="which no move left there"):
            await there.welcome(newer(pair, "b"), luggage)
        await there.clear_out(pair.plan("b").ref, luggage, was_home=False)
        assert files(1, pair.uid) >= {"root.qcow2", "base-2.qcow2"}
        for name in theirs:
            pool.storageVolLookupByName(name).delete()
        del pool
        connection.close()


async def test_a_guest_that_is_up_to_be_sent_is_ended_by_whoever_needs_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody calls the move back where its source was thought to be off."""
    async with real(tmp_path, pool="novacron") as pair:
        here, there = connect(pair, "a"), connect(pair, "b")
        await with_snapshots(pair, here)
        written = definition(pair.uid)
        luggage = await packed(here, pair.plan("a").ref)
        destination = await there.welcome(newer(pair, "b"), luggage)
        await is_killed_as_it_sends(pair, here, destination, monkeypatch)
        other, ref = connect(pair, "a"), pair.plan("a").ref
        seen = await other.observe(ref)
        assert seen is not None
        assert seen.drifted is not None
        await other.resize(newer(pair, "a"))
        seen = await pair.settled(other, "a")
        assert seen is not None
        assert (seen.power, seen.drifted) == (Power.OFF, None)
        assert not is_marked_as_sent(definition(pair.uid))
        assert (SENT in definition(pair.uid)) is (SENT in written)
        await other.pack(ref)
        assert not [name for name in files(0, pair.uid) if name.startswith("base")]


async def test_a_guest_that_may_stand_still_for_ever_holds_up_neither_moves_nor_a_restore(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its agent is silent, and somebody died while he took a snapshot of it."""
    async with real(tmp_path, pool="shared") as pair:
        here, there, ref = connect(pair, "a"), connect(pair, "b"), pair.plan("a").ref
        await with_snapshots(pair, here)
        await here.set_power(ref, Power.ON)
        await pair.settled(here, "a")

        def silent(*_: object) -> None:
            raise MaybeFrozen

        monkeypatch.setattr(snapshotting, "thaw", silent)
        monkeypatch.setattr(snapshotting, "unfinished", lambda _: ["half"])
        monkeypatch.setattr(snapshotting, "clear", silent)
        monkeypatch.setattr("novacron.drivers.libvirt.snapshot_book.unfinished", lambda _: ["half"])
        monkeypatch.setattr("novacron.drivers.libvirt.snapshot_book.clear", silent)
        destination = await there.welcome(pair.plan("b"), await packed(here, ref))
        await here.send(ref, destination, MovePolicy())
        await pair.settled(here, "a")
        with pytest.raises(Exception, match="may be frozen") as failed:
            await here.send(ref, destination, MovePolicy())
        assert not isinstance(failed.value, MaybeFrozen), "it would be waited for"

        async def is_back() -> bool:
            found = await here.snapshots(ref)
            await here.restore_snapshot(ref, RestoreOrder("disks", "back"))
            return any(each.restored == "back" for each in found)

        await until(is_back)
