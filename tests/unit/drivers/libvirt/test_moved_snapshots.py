"""Machines that are off go with their snapshots to hosts that do not see their disks."""

import asyncio
import subprocess
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Protocol

import libvirt
import pytest

from conformance.pairs import Mover, Pair, real
from fleet import shared_fleet
from novacron.core.errors import Busy, Rejected
from novacron.core.machine import MachinePlan, MachineRef, Power
from novacron.core.migration import Destination, Luggage
from novacron.core.move import MovePolicy
from novacron.core.snapshot import RestoreOrder, SnapshotOrder, Snapshots
from novacron.drivers.libvirt import snapshotting
from novacron.drivers.libvirt.belongings import Belongings
from novacron.drivers.libvirt.domain import domain_uuid, root_volume, volume_prefix
from novacron.drivers.libvirt.look import Domain
from novacron.drivers.libvirt.pool import read_volume
from novacron.drivers.libvirt.qcow2_header import Header
from novacron.drivers.libvirt.snapshot_record import Note, write
from rights import ROOT

pytestmark = [
    pytest.mark.skipif(not ROOT, reason="hosts of their own need root"),
    pytest.mark.timeout(300),
]

SNAPSHOTS = ("disks", "memory")


class Keeper(Mover, Snapshots, Protocol):
    """A driver that moves machines, with their snapshots."""


def connect(pair: Pair, host: str) -> Keeper:
    """Return a driver that knows nothing of earlier ones."""
    driver = pair.connect(host)
    assert isinstance(driver, Snapshots)
    return driver  # type: ignore[return-value]


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    """Wait for what a driver does behind its answers."""
    for _ in range(400):
        try:
            if await is_so():
                return
        except Busy:
            pass
        await asyncio.sleep(0.1)
    raise AssertionError(f"still not {is_so}")


async def names(driver: Keeper, ref: MachineRef) -> set[str]:
    """Return the snapshots that a driver tells of."""
    return {each.name for each in await driver.snapshots(ref)}


async def take(driver: Keeper, ref: MachineRef, name: str, *, memory: bool) -> None:
    """Have a snapshot."""
    order = SnapshotOrder(name, memory=memory)

    async def is_there() -> bool:
        await driver.take_snapshot(ref, order)
        return name in await names(driver, ref)

    await until(is_there)
    await packed(driver, ref)


async def packed(driver: Keeper, ref: MachineRef) -> Luggage:
    """Return what a machine has when nobody is at its snapshots any more, or at their book."""
    for _ in range(400):
        luggage = await driver.pack(ref)
        if not Belongings.of(luggage.contents).changing:
            return luggage
        await asyncio.sleep(0.1)
    raise AssertionError("somebody is still at its snapshots")


def newer(pair: Pair, host: str) -> MachinePlan:
    """Return the machine with other first instructions than it was made with."""
    return replace(pair.plan(host), user_data="#!/bin/sh\necho newer\n")


async def with_snapshots(pair: Pair, here: Keeper) -> None:
    """Have the machine on host a, off, with a snapshot of when it was off and one of a guest."""
    plan = pair.plan("a")
    await here.create(plan)
    await pair.settled(here, "a")
    await take(here, plan.ref, "disks", memory=False)
    await here.resize(newer(pair, "a"))
    await pair.settled(here, "a")
    await here.set_power(plan.ref, Power.ON)
    await pair.settled(here, "a")
    await take(here, plan.ref, "memory", memory=True)
    await here.set_power(plan.ref, Power.OFF, force=True)
    await pair.settled(here, "a")
    assert await names(here, plan.ref) == set(SNAPSHOTS)


async def moved(pair: Pair, drivers: dict[str, Keeper], source: str, target: str) -> None:
    """Move the machine while it is off."""
    here, there = drivers[source], drivers[target]
    luggage = await packed(here, pair.plan(source).ref)
    destination = await there.welcome(newer(pair, target), luggage)
    await here.send(pair.plan(source).ref, destination, MovePolicy())
    assert await pair.settled(here, source) is None
    await there.arrived(newer(pair, target), luggage)
    await there.arrived(newer(pair, target), None)  # somebody died, and nobody knows
    kept = await packed(there, pair.plan(target).ref)
    await here.clear_out(pair.plan(source).ref, kept, was_home=True)
    seen = await pair.settled(there, target)
    assert seen is not None
    assert (seen.power, seen.drifted) == (Power.OFF, None)


def files(number: int, uid: str) -> set[str]:
    """Return what a host has of a machine, without the beginning that all names have."""
    connection = libvirt.open(shared_fleet().hosts[number].uri)
    pool = connection.storagePoolLookupByName("novacron")
    pool.refresh()
    found = {
        it.removeprefix(volume_prefix(uid)) for it in pool.listVolumes() if domain_uuid(uid) in it
    }
    del pool
    connection.close()
    return found


def snapshotted(number: int, uid: str, into: Path) -> dict[str, str]:
    """Return a digest of what a guest saw of its first disk, now and then."""
    connection = libvirt.open(shared_fleet().hosts[number].uri)
    pool = connection.storagePoolLookupByName("novacron")
    disk, below = into / f"disk-{number}", into / f"base-{number}"
    header = Header.of(partial(read_volume, pool.storageVolLookupByName(root_volume(uid))))
    assert header is not None
    base = pool.storageVolLookupByName(Path(header.backing).name)
    assert base.path() == header.backing
    below.write_bytes(read_volume(base))
    disk.write_bytes(read_volume(pool.storageVolLookupByName(root_volume(uid))))
    kind = Path(header.backing).suffix.removeprefix(".")
    del pool, base
    connection.close()
    run("qemu-img", "rebase", "-u", "-f", "qcow2", "-F", kind, "-b", below, disk)
    run("qemu-img", "check", disk)
    return {name: digest(disk, name, into) for name in ("", *SNAPSHOTS)}


def digest(disk: Path, snapshot: str, into: Path) -> str:
    """Return a digest of what a guest saw of a disk."""
    seen, then = into / "seen", ["-l", f"snapshot.name={snapshot}"] if snapshot else []
    run("qemu-img", "convert", *then, "-O", "raw", disk, seen)
    return run("sha256sum", seen).split()[0]


def run(*command: str | Path) -> str:
    """Run a program."""
    done = subprocess.run([str(each) for each in command], check=True, capture_output=True)
    return done.stdout.decode()


async def test_a_machine_that_is_off_goes_with_its_snapshots_and_comes_back_with_them(
    tmp_path: Path,
) -> None:
    """With every byte, though its image is under another name there, and is not asked for."""
    async with real(tmp_path, pool="novacron") as pair:
        drivers = {host: connect(pair, host) for host in "ab"}
        await with_snapshots(pair, drivers["a"])
        before, had = snapshotted(0, pair.uid, tmp_path), files(0, pair.uid)
        assert sum(it.startswith("seed") for it in had) == 2
        for source, target, base in (("a", "b", 1), ("b", "a", 2), ("a", "b", 1)):
            await moved(pair, drivers, source, target)
            number = "ab".index(target)
            assert files(1 - number, pair.uid) == set()
            assert {it for it in files(number, pair.uid) if it.startswith("base")} == {
                f"base-{base}.qcow2"
            }
            assert files(number, pair.uid) >= {it for it in had if it.startswith("seed")}
            assert await names(drivers[target], pair.plan(target).ref) == set(SNAPSHOTS)
            assert snapshotted(number, pair.uid, tmp_path) == before
        there, ref = drivers["b"], pair.plan("b").ref
        await until(lambda: is_back(pair, there, "memory"))
        await there.set_power(ref, Power.OFF, force=True)
        await pair.settled(there, "b")
        await until(lambda: is_back(pair, there, "disks"))
        await there.delete(ref)
        assert await pair.settled(there, "b") is None
        assert files(1, pair.uid) == set()


async def is_back(pair: Pair, driver: Keeper, name: str) -> bool:
    """Have a machine go back to a snapshot; say whether it has."""
    await driver.restore_snapshot(pair.plan("b").ref, RestoreOrder(name, f"to-{name}"))
    found = await driver.snapshots(pair.plan("b").ref)
    return any(each.name == name and each.restored == f"to-{name}" for each in found)


async def about_to_go(pair: Pair) -> tuple[Keeper, Destination]:
    """Have the machine on host a, and host b ready for it."""
    here = connect(pair, "a")
    await with_snapshots(pair, here)
    luggage = await packed(here, pair.plan("a").ref)
    return here, await connect(pair, "b").welcome(newer(pair, "b"), luggage)


async def test_a_machine_that_did_not_come_stays_as_it_was(tmp_path: Path) -> None:
    """Nothing is left of what it was lent, and it is written down as it was."""
    async with real(tmp_path, pool="novacron") as pair:
        here, destination = await about_to_go(pair)
        before, written = files(0, pair.uid), definition(pair.uid)
        route = replace(destination.details["route"], uri="qemu+tcp://127.0.0.1:1/system")  # type: ignore[type-var]
        await here.send(
            pair.plan("a").ref, replace(destination, details={"route": route}), MovePolicy()
        )
        seen = await pair.settled(here, "a")
        assert seen is not None
        assert seen.power is Power.OFF
        assert files(0, pair.uid) == before
        assert definition(pair.uid) == written
        assert await names(here, pair.plan("a").ref) == set(SNAPSHOTS)
        kept = await packed(here, pair.plan("a").ref)
        await connect(pair, "b").clear_out(pair.plan("b").ref, kept, was_home=False)
        assert files(1, pair.uid) == set()


async def is_killed_as_it_sends(
    pair: Pair, here: Keeper, destination: Destination, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Have a machine that is off be up to be sent, and nobody send it."""

    def dies(*_: object) -> None:
        raise SystemError("the operator is killed here")

    with monkeypatch.context() as patched:
        patched.setattr(libvirt.virDomain, "migrateToURI3", dies)
        await here.send(pair.plan("a").ref, destination, MovePolicy())
        await until(lambda: is_up(here, pair.plan("a").ref))


async def test_who_dies_while_it_is_up_to_be_sent_leaves_a_machine_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process ends what is up with files for disks, and takes back what it was lent."""
    async with real(tmp_path, pool="novacron") as pair:
        here, destination = await about_to_go(pair)
        before, written = files(0, pair.uid), definition(pair.uid)
        await is_killed_as_it_sends(pair, here, destination, monkeypatch)
        assert "base-1.qcow2" in files(0, pair.uid)
        other = connect(pair, "a")
        await other.cancel_move(pair.plan("a").ref)
        await pair.settled(other, "a")
        await other.pack(pair.plan("a").ref)
        assert await names(other, pair.plan("a").ref) == set(SNAPSHOTS)
        assert definition(pair.uid) == written
        assert {it for it in files(0, pair.uid) if it.startswith("base")} == set()
        assert {it for it in files(0, pair.uid) if "snapshots" not in it} == {
            it for it in before if "snapshots" not in it
        }


async def is_up(driver: Keeper, ref: MachineRef) -> bool:
    """Say whether a guest is there and nobody sends it any more."""
    seen = await driver.observe(ref)
    return seen is not None and seen.power is Power.ON and await driver.movement(ref) is None


def definition(uid: str) -> str:
    """Return how the machine is written down on host a."""
    connection = libvirt.open(shared_fleet().hosts[0].uri)
    domain = connection.lookupByUUIDString(domain_uuid(uid))
    text: str = domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE)
    del domain
    connection.close()
    return text


async def test_a_guest_that_stands_still_for_a_snapshot_is_thawed_before_it_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who took the snapshot died, and its record would be the only thing to tell of that."""
    async with real(tmp_path, pool="shared") as pair:
        here, there, ref = connect(pair, "a"), connect(pair, "b"), pair.plan("a").ref
        await here.create(pair.plan("a"))
        await pair.settled(here, "a")
        await here.set_power(ref, Power.ON)
        await pair.settled(here, "a")
        connection = libvirt.open(shared_fleet().hosts[0].uri)
        domain = connection.lookupByUUIDString(domain_uuid(ref.uid))
        write(domain, "half", Note(), datetime.now(UTC))
        thawed: list[str] = []
        monkeypatch.setattr(snapshotting, "thaw", lambda each: thawed.append(each.uid))
        destination = await there.welcome(pair.plan("b"), await packed(here, ref))
        await here.send(ref, destination, MovePolicy())
        assert await pair.settled(here, "a") is None
        assert thawed == [ref.uid]
        await there.arrived(pair.plan("b"), None)
        assert await names(there, pair.plan("b").ref) == set()
        del domain
        connection.close()


async def test_a_guest_that_runs_is_not_sent_without_its_snapshots(tmp_path: Path) -> None:
    """It says that it would have to be stopped, and what else would do."""
    async with real(tmp_path, pool="novacron") as pair:
        here = connect(pair, "a")
        await with_snapshots(pair, here)
        await here.set_power(pair.plan("a").ref, Power.ON)
        await pair.settled(here, "a")
        luggage = await packed(here, pair.plan("a").ref)
        destination = await connect(pair, "b").welcome(newer(pair, "b"), luggage)
        with pytest.raises(Rejected, match="--stop-allowed") as refused:
            await here.send(pair.plan("a").ref, destination, MovePolicy())
        assert refused.value.reason == "HasSnapshots"


@pytest.mark.parametrize("power", [Power.OFF, Power.ON])
async def test_no_disk_is_copied_while_its_first_snapshot_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, power: Power
) -> None:
    """The copy would be without, and what has it is removed once the machine has gone."""
    async with real(tmp_path, pool="novacron") as pair:
        here, there, plan = connect(pair, "a"), connect(pair, "b"), pair.plan("a")
        await here.create(plan)
        await pair.settled(here, "a")
        if power is Power.ON:
            await here.set_power(plan.ref, power)
            await pair.settled(here, "a")
        may_begin = threading.Event()
        take = snapshotting.take

        def late(domain: Domain, order: SnapshotOrder, lingers: Callable[[], object]) -> None:
            assert may_begin.wait(60)
            take(domain, order, lingers)

        monkeypatch.setattr(snapshotting, "take", late)
        await here.take_snapshot(plan.ref, SnapshotOrder("one"))
        luggage = await here.pack(plan.ref)
        with pytest.raises(Busy, match="at its snapshots"):
            await there.welcome(pair.plan("b"), luggage)
        assert not [name for name in files(1, pair.uid) if name.startswith("root")]
        may_begin.set()

        async def is_taken() -> bool:
            return await names(here, plan.ref) == {"one"}

        await until(is_taken)
        await there.welcome(pair.plan("b"), await packed(here, plan.ref))
        await there.clear_out(pair.plan("b").ref, await packed(here, plan.ref), was_home=False)
