"""What moves of stopped machines leave behind, and which of their volumes come along."""

from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import libvirt
import pytest

from conformance.pairs import Mover, Pair, real
from fleet import shared_fleet
from novacron.core.errors import OutOfCapacity, Rejected
from novacron.core.machine import MachinePlan, Observed, Power
from novacron.core.migration import Luggage
from novacron.core.move import MovePolicy
from novacron.core.volume import COMMON, Access, Reclaim, Volume, volume_id
from novacron.drivers.libvirt.domain import domain_uuid
from novacron.drivers.libvirt.host import ClassPool
from novacron.drivers.libvirt.pool import Pool, read_volume
from novacron.drivers.libvirt.storage import COMING
from novacron.drivers.libvirt.travel import is_marked_as_sent, marked_as_sent
from rights import ROOT

pytestmark = pytest.mark.skipif(not ROOT, reason="hosts of their own need root")


async def left_from_before(pair: Pair, here: Mover) -> str:
    """Have a volume on host a that an earlier machine left; return its file."""
    maker = replace(pair.plan("a"), volumes=(Volume("data", 16),))
    await here.create(maker)
    await pair.settled(here, "a")
    await here.delete(maker.ref)
    await pair.settled(here, "a")
    (kept,) = volumes_on(0)
    return kept


def volumes_on(number: int) -> set[str]:
    """Return the files of volumes in all pools of one of the hosts."""
    outside = libvirt.open(shared_fleet().hosts[number].uri)
    pools = outside.listAllStoragePools()
    files = {each.name() for pool in pools for each in pool.listAllVolumes()}
    outside.close()
    return {name for name in files if name.startswith("volume-")}


def id_of(file: str) -> str:
    """Return what users call a volume."""
    return file.removeprefix("volume-default.").rpartition(".")[0]


async def moved(pair: Pair, here: Mover, there: Mover, plan: MachinePlan) -> Observed | None:
    """Move a machine that is off from a to b, and settle it there."""
    coming = replace(plan, ref=pair.plan("b").ref)
    luggage = await here.pack(plan.ref)
    destination = await there.welcome(coming, luggage)
    await here.send(plan.ref, destination, MovePolicy())
    assert await pair.settled(here, "a") is None
    await there.arrived(coming, luggage)
    await here.clear_out(plan.ref, await there.pack(coming.ref), was_home=True)
    return await pair.settled(there, "b")


def elsewhere(luggage: Luggage) -> Luggage:
    """Return what a machine has as if all of it was in a place that this host does not see."""
    disks = luggage.contents["disks"]
    apart = tuple(replace(each, marks=frozenset({"far away"})) for each in disks)
    return Luggage({**luggage.contents, "disks": apart, "said_in": frozenset()})


async def about_to_go(pair: Pair, here: Mover) -> tuple[MachinePlan, MachinePlan]:
    """Have a machine with a volume on host a; return it as it is there, and as it is to be on b."""
    plan = replace(pair.plan("a"), volumes=(Volume("data", 16, reclaim=Reclaim.DELETE),))
    await here.create(plan)
    await pair.settled(here, "a")
    return plan, replace(plan, ref=pair.plan("b").ref)


async def test_a_pool_is_looked_into_once_for_all_disks_that_are_to_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """libvirt opens each of its files for that, and there may be thousands of others' disks."""
    async with real(tmp_path, pool="novacron") as pair:
        here, there = pair.connect("a"), pair.connect("b")
        volumes = tuple(Volume(f"data{n}", 16, reclaim=Reclaim.DELETE) for n in range(3))
        plan = replace(pair.plan("a"), volumes=volumes)
        await here.create(plan)
        await pair.settled(here, "a")
        coming = replace(plan, ref=pair.plan("b").ref)
        for driver, ref in ((here, plan.ref), (there, coming.ref)):
            await driver.pack(ref)  # which gives its pool a mark
        looked: list[str] = []
        refresh = Pool.refresh

        def counted(pool: Pool) -> None:
            refresh(pool)  # which libvirt refuses while a volume is being filled, without a look
            looked.append(pool.name)

        monkeypatch.setattr(Pool, "refresh", counted)
        luggage = await here.pack(plan.ref)
        assert looked == ["novacron"]
        await there.welcome(coming, luggage)
        assert looked == ["novacron"] * 2
        assert sum(file.endswith(COMING) for file in volumes_on(1)) == len(volumes)
        await there.clear_out(coming.ref, luggage, was_home=False)
        assert looked == ["novacron"] * 4, "once for disks, once for files that it did not make"
        assert volumes_on(1) == set()


@pytest.mark.parametrize("power", list(Power))
async def test_only_a_guest_that_is_up_to_be_sent_is_ended_with_the_move(
    tmp_path: Path, power: Power
) -> None:
    """Somebody began to send a machine that is off, and died; another one is just running."""
    async with real(tmp_path, pool="shared") as pair:
        here, ref = pair.connect("a"), pair.plan("a").ref
        await here.create(pair.plan("a"))
        await pair.settled(here, "a")
        outside = libvirt.open(shared_fleet().hosts[0].uri)
        domain = outside.lookupByUUIDString(domain_uuid(ref.uid))
        if power is Power.OFF:
            domain = outside.defineXML(marked_as_sent(domain.XMLDesc()))
        domain.createWithFlags(libvirt.VIR_DOMAIN_START_PAUSED)
        await pair.connect("a").cancel_move(ref)
        assert bool(domain.isActive()) is (power is Power.ON)
        del domain
        outside.close()


async def test_a_mark_that_somebody_left_costs_no_guest_that_runs(tmp_path: Path) -> None:
    """Who began to send the machine died before it was up; then it stayed, and was started."""
    async with real(tmp_path, pool="shared") as pair:
        here, ref = pair.connect("a"), pair.plan("a").ref
        await here.create(pair.plan("a"))
        await pair.settled(here, "a")
        outside = libvirt.open(shared_fleet().hosts[0].uri)
        domain = outside.lookupByUUIDString(domain_uuid(ref.uid))
        domain = outside.defineXML(marked_as_sent(domain.XMLDesc()))
        domain.create()
        await here.cancel_move(ref)
        assert domain.isActive(), "its plug was pulled"
        domain.suspend()  # by somebody who knows nothing of all this
        await here.cancel_move(ref)
        assert domain.isActive(), "the mark is still on it"
        seen = await here.observe(ref)
        assert seen is not None
        assert seen.drifted == "a move was given up in the midst of it"
        await here.resize(pair.plan("a"))
        seen = await pair.settled(here, "a")
        assert seen is not None
        assert seen.drifted is None
        assert not is_marked_as_sent(domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE))
        del domain
        outside.close()


async def test_a_machine_that_is_sent_again_in_vain_stays_without_the_mark(
    tmp_path: Path,
) -> None:
    """The first one who sent it died, and the other host does not take it from the second."""
    async with real(tmp_path, pool="shared") as pair:
        here, there, ref = pair.connect("a"), pair.connect("b"), pair.plan("a").ref
        await here.create(pair.plan("a"))
        await pair.settled(here, "a")
        outside = libvirt.open(shared_fleet().hosts[0].uri)
        domain = outside.lookupByUUIDString(domain_uuid(ref.uid))
        domain = outside.defineXML(marked_as_sent(domain.XMLDesc()))
        destination = await there.welcome(pair.plan("b"), await here.pack(ref))
        route = replace(destination.details["route"], uri="qemu+tcp://127.0.0.1:1/system")
        await here.send(ref, replace(destination, details={"route": route}), MovePolicy())
        seen = await pair.settled(here, "a")
        assert seen is not None
        assert seen.power is Power.OFF
        assert not is_marked_as_sent(domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE))
        del domain
        outside.close()


@pytest.mark.parametrize("pool", ["shared", "novacron"])
async def test_a_volume_that_was_there_before_its_machine_comes_along(
    tmp_path: Path, pool: str
) -> None:
    """Whether both hosts see it or it is copied."""
    async with real(tmp_path, pool=pool) as pair:
        here, there = pair.connect("a"), pair.connect("b")
        kept = await left_from_before(pair, here)
        plan = replace(pair.plan("a"), volumes=(Volume("data", 16, existing=id_of(kept)),))
        await here.create(plan)
        await pair.settled(here, "a")
        seen = await moved(pair, here, there, plan)
        assert seen is not None
        assert [each.name for each in seen.volumes] == ["data"]
        assert pair.left_behind().count(kept) == 1


@pytest.mark.parametrize("access", sorted(COMMON))
async def test_a_volume_that_others_may_have_too_is_neither_copied_nor_removed(
    tmp_path: Path, access: Access
) -> None:
    """A copy would be another volume, and others go on with this one."""
    common = {"common": ClassPool("novacron", shared=True)}
    async with real(tmp_path, pool="novacron", classes={"a": common, "b": common}) as pair:
        here, there = pair.connect("a"), pair.connect("b")
        if access is Access.MANY:
            volume = Volume("data", 16, storage_class="common", access=access)
        else:
            kept = await left_from_before(pair, here)
            volume = Volume("data", 16, existing=id_of(kept), access=access)
        plan = replace(pair.plan("a"), volumes=(volume,))
        await here.create(plan)
        seen = await pair.settled(here, "a")
        assert seen is not None
        assert [each.access for each in seen.volumes] == [access]
        coming, luggage = replace(plan, ref=pair.plan("b").ref), await here.pack(plan.ref)
        with pytest.raises(Rejected, match="other machines may have too") as refused:
            await there.welcome(coming, luggage)
        assert refused.value.reason == "DisksOutOfReach"
        before = volumes_on(0)
        # As it would be where one who knew nothing of this had it copied.
        await here.clear_out(plan.ref, elsewhere(luggage), was_home=True)
        assert volumes_on(0) == before
        assert len(before) == 1


async def test_a_disk_of_which_only_a_part_has_come_is_not_taken_for_one(tmp_path: Path) -> None:
    """A machine whose host is lost amid a copy does not begin with it, nor is it left for ever."""
    async with real(tmp_path, pool="novacron") as pair:
        here, there = pair.connect("a"), pair.connect("b")
        plan, coming = await about_to_go(pair, here)
        before = pair.left_behind()
        assert await there.out_of_reach(coming) == "its first disk"
        await there.welcome(coming, await here.pack(plan.ref))
        assert await there.out_of_reach(coming) == "its first disk, which came only in part"
        assert await there.kept_volumes("b") == [], "nobody is to use the half of a volume"
        await there.clear_out(coming.ref, await here.pack(plan.ref), was_home=False)
        assert pair.left_behind() == before
        assert await moved(pair, here, there, plan) is not None
        assert await there.out_of_reach(coming) is None
        assert not [name for name in pair.left_behind() if name.endswith(".coming")]
        await there.reclaim(coming.ref, coming.volumes or ())


async def test_half_a_volume_is_nobodys_to_attach_and_goes_when_it_is_deleted(
    tmp_path: Path,
) -> None:
    """Its machine is still where it was, and the copy ended with its host or with the operator."""
    async with real(tmp_path, pool="novacron") as pair:
        here, there = pair.connect("a"), pair.connect("b")
        plan, coming = await about_to_go(pair, here)
        before = pair.left_behind()
        await there.welcome(coming, await here.pack(plan.ref))
        half = volume_id(plan.ref.name, "data", plan.ref.uid)
        file = f"volume-default.{half}.qcow2"
        assert volumes_on(1) == {file, f"{file}.coming"}
        heir = replace(coming, ref=replace(coming.ref, uid=str(uuid4()), name="heir"))
        with pytest.raises(OutOfCapacity, match=f"there is no volume {half} "):
            await there.create(replace(heir, volumes=(Volume("data", 16, existing=half),)))
        await there.delete_volume("b", coming.ref.namespace, half)
        assert volumes_on(1) == set()
        await there.clear_out(coming.ref, await here.pack(plan.ref), was_home=False)
        assert pair.left_behind() == before


async def test_a_machine_that_came_is_at_home_also_when_it_is_to_change_in_vain(
    tmp_path: Path,
) -> None:
    """Its owner asked for something meanwhile that the other host has not; that is told there."""
    async with real(tmp_path, pool="novacron") as pair:
        here, there = pair.connect("a"), pair.connect("b")
        plan = pair.plan("a")
        await here.create(plan)
        await pair.settled(here, "a")
        coming = replace(plan, ref=pair.plan("b").ref)
        luggage = await here.pack(plan.ref)
        await here.send(plan.ref, await there.welcome(coming, luggage), MovePolicy())
        assert await pair.settled(here, "a") is None
        wishful = replace(coming, volumes=(Volume("data", 16, storage_class="of-another-host"),))
        await there.arrived(wishful, luggage)
        assert not [name for name in pair.left_behind() if name.endswith(".coming")]
        with pytest.raises(Rejected, match="of-another-host"):
            await there.resize(wishful)
        await here.clear_out(plan.ref, await there.pack(coming.ref), was_home=True)


async def test_a_file_that_no_move_left_is_not_written_over(tmp_path: Path) -> None:
    """It may be the only one that has somebody's data; whoever knows may move it away."""
    async with real(tmp_path, pool="novacron") as pair:
        here, there = pair.connect("a"), pair.connect("b")
        plan, coming = await about_to_go(pair, here)
        file = f"volume-default.{volume_id(plan.ref.name, 'data', plan.ref.uid)}.qcow2"
        outside = libvirt.open(shared_fleet().hosts[1].uri)
        pool = outside.storagePoolLookupByName("novacron")
        theirs = pool.createXML(f"<volume><name>{file}</name><capacity>4096</capacity></volume>")
        stream = outside.newStream()
        theirs.upload(stream, 0, 0)
        stream.send(b"theirs")
        stream.finish()
        with pytest.raises(Rejected, match=f"has a file {file} in pool novacron") as refused:
            await there.welcome(coming, await here.pack(plan.ref))
        assert refused.value.reason == "VolumeExists"
        await there.clear_out(coming.ref, await here.pack(plan.ref), was_home=False)
        kept = read_volume(pool.storageVolLookupByName(file))
        assert kept == b"theirs".ljust(4096, b"\0"), "the move that was refused took it away"
        theirs.delete()
        assert await moved(pair, here, there, plan) is not None
        await there.reclaim(coming.ref, coming.volumes or ())
        del stream, theirs, pool
        outside.close()
