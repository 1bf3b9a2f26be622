"""Volumes: made with the machine or later, grown, taken off, kept, and found again."""

from dataclasses import replace
from functools import partial

import pytest

from conformance.under_test import Bench, FullDriver
from novacron.core.errors import OutOfCapacity, Rejected, Unsupported
from novacron.core.machine import MachinePlan, Observed, Power
from novacron.core.volume import Access, Attachment, KeptVolume, Volume, volume_id

DATA = Volume("data", 64)
LOGS = Volume("a-volume-with-a-rather-long-name", 32)


def states(seen: Observed | None) -> dict[str, Attachment]:
    """Return how each volume is joined."""
    assert seen is not None
    return {volume.name: volume.attachment for volume in seen.volumes}


async def changed(
    bench: Bench, driver: FullDriver, plan: MachinePlan, *volumes: Volume
) -> Observed:
    """Give a machine other volumes and return what came of it."""
    order = partial(driver.resize, replace(plan, volumes=volumes))
    return await bench.insist(order, driver, plan.ref)


async def test_a_machine_is_made_with_its_volumes(bench: Bench, driver: FullDriver) -> None:
    """Also twice, and every way of asking tells the same."""
    plan = bench.plan(volumes=(DATA, LOGS))
    seen = await bench.created(driver, plan)
    seen = await changed(bench, driver, plan, DATA, LOGS)
    assert states(seen) == {"data": Attachment.ATTACHED, LOGS.name: Attachment.ATTACHED}
    assert seen.volumes[0].id == volume_id("web", "data", "uid-1")
    assert seen.volumes[0].size_mib == 64
    assert seen.resources == bench.small, "the first disk is what it was"
    assert [each.volumes for each in await driver.machines(bench.host)] == [seen.volumes]
    assert await bench.created(driver, plan) == seen


@pytest.mark.parametrize("power", list(Power))
async def test_volumes_come_and_grow(bench: Bench, driver: FullDriver, power: Power) -> None:
    """Under a running guest too, which is neither stopped nor told to restart."""
    plan = bench.plan(volumes=(DATA,))
    await bench.created(driver, plan)
    await bench.after(driver.set_power(plan.ref, power), driver, plan.ref)
    seen = await changed(bench, driver, plan, replace(DATA, size_mib=96), LOGS)
    assert states(seen) == {"data": Attachment.ATTACHED, LOGS.name: Attachment.ATTACHED}
    assert [volume.size_mib for volume in seen.volumes] == [96, 32]
    assert (seen.power, seen.drifted) == (power, None)
    assert bench.only_grows_running or not seen.awaits_restart


async def test_a_volume_taken_off_is_kept_and_comes_back_as_it_was(
    bench: Bench, driver: FullDriver
) -> None:
    """A list with a mistake in it must not cost data."""
    plan = bench.plan(volumes=(DATA, LOGS))
    await bench.created(driver, plan)
    grown = replace(DATA, size_mib=96)
    await changed(bench, driver, plan, grown, LOGS)
    seen = await changed(bench, driver, plan, LOGS)
    assert states(seen) == {"data": Attachment.DETACHED, LOGS.name: Attachment.ATTACHED}
    with pytest.raises(Rejected, match="never shrinks"):
        await driver.resize(replace(plan, volumes=(DATA, LOGS)))
    seen = await changed(bench, driver, plan, LOGS, grown)
    assert states(seen) == {"data": Attachment.ATTACHED, LOGS.name: Attachment.ATTACHED}


async def test_a_running_guest_is_asked_to_let_go_of_a_volume(
    bench: Bench, driver: FullDriver
) -> None:
    """One that does not listen has it until it was off; it may have it again before that."""
    plan = bench.plan(volumes=(DATA,))
    await bench.created(driver, plan)
    await bench.after(driver.set_power(plan.ref, Power.ON), driver, plan.ref)
    seen = await changed(bench, driver, plan)
    assert states(seen)["data"] in (Attachment.DETACHING, Attachment.DETACHED)
    assert bench.only_grows_running or not seen.awaits_restart
    assert states(await changed(bench, driver, plan, DATA)) == {"data": Attachment.ATTACHED}
    await changed(bench, driver, plan)
    await bench.after(driver.set_power(plan.ref, Power.OFF, force=True), driver, plan.ref)
    assert states(await driver.observe(plan.ref)) == {"data": Attachment.DETACHED}


async def test_a_volume_never_shrinks(bench: Bench, driver: FullDriver) -> None:
    """Nothing else of the order is done either."""
    plan = bench.plan(volumes=(DATA,))
    before = await bench.created(driver, plan)
    with pytest.raises(Rejected, match="never shrinks"):
        await driver.resize(replace(plan, volumes=(replace(DATA, size_mib=32), LOGS)))
    assert await bench.settled(driver, plan.ref) == before


async def test_volumes_that_nobody_decided_about_stay(bench: Bench, driver: FullDriver) -> None:
    """Where the host has no room for what is asked for, the machine goes on with what it has."""
    plan = bench.plan(volumes=(DATA,))
    before = await bench.created(driver, plan)
    larger = replace(bench.resized(plan, bench.large), volumes=None)
    seen = await bench.after(driver.resize(larger), driver, plan.ref)
    assert seen is not None
    assert seen.volumes == before.volumes


async def test_a_class_that_the_host_does_not_have_is_named(
    bench: Bench, driver: FullDriver
) -> None:
    """A machine that is not there yet may go elsewhere; one that is waits for its host."""
    golden = replace(DATA, storage_class="golden")
    if not bench.limited:
        await _awaits_a_class(driver, bench.plan(volumes=(golden,)))
        return
    with pytest.raises(OutOfCapacity, match=r"golden.*storageClasses"):
        await driver.create(bench.plan(volumes=(golden,)))
    assert await driver.observe(bench.plan().ref) is None
    plan = bench.plan()
    before = await bench.created(driver, plan)
    with pytest.raises(Rejected, match=r"golden.*storageClasses"):
        await driver.resize(replace(plan, volumes=(golden,)))
    assert await driver.observe(plan.ref) == before


async def test_only_shared_storage_is_written_by_many(bench: Bench, driver: FullDriver) -> None:
    """And then by a second machine at the same time."""
    if not bench.takes_over_volumes:
        await _takes_nothing_over(bench, driver)
        return
    for storage_class in (None, bench.unshared_class):
        alone = replace(DATA, storage_class=storage_class, access=Access.MANY)
        with pytest.raises(OutOfCapacity, match="shared"):
            await driver.create(bench.plan(volumes=(alone,)))
    common = replace(DATA, storage_class=bench.shared_class, access=Access.MANY)
    first = bench.plan(volumes=(common,))
    seen = await bench.created(driver, first)
    again = replace(common, existing=seen.volumes[0].id)
    second = bench.plan("uid-2", name="db", volumes=(again,))
    await bench.created(driver, second)
    for plan in (first, second):
        seen = await changed(bench, driver, plan, *(plan.volumes or ()))
        assert states(seen) == {"data": Attachment.ATTACHED}
        await bench.after(driver.set_power(plan.ref, Power.ON), driver, plan.ref)
    assert [each.power for each in await driver.machines(bench.host)] == [Power.ON, Power.ON]


async def test_a_kept_volume_is_found_and_another_machine_takes_it(
    bench: Bench, driver: FullDriver
) -> None:
    """It is told of under the name it had, and is one machine's at a time."""
    if not bench.takes_over_volumes:
        await _is_kept_until_deleted(bench, driver)
        return
    fast = replace(LOGS, storage_class=bench.unshared_class)
    plan = bench.plan(volumes=(DATA, fast))
    seen = await bench.created(driver, plan)
    ids = [volume.id for volume in seen.volumes]
    await bench.after(driver.delete(plan.ref), driver, plan.ref)
    assert set(await driver.kept_volumes(bench.host)) == {
        KeptVolume("default", ids[0], 64),
        KeptVolume("default", ids[1], 32, bench.unshared_class),
    }
    heir = bench.plan("uid-2", name="db", volumes=(replace(DATA, existing=ids[0]),))
    await bench.created(driver, heir)
    seen = await changed(bench, driver, heir, *(heir.volumes or ()))
    assert (states(seen), seen.volumes[0].id) == ({"data": Attachment.ATTACHED}, ids[0])
    with pytest.raises(Rejected, match="default/db"):
        await driver.delete_volume(bench.host, "default", ids[0])
    other = bench.plan("uid-3", name="thief")
    await bench.created(driver, other)
    with pytest.raises(Rejected, match="default/db"):
        await driver.resize(replace(other, volumes=(replace(DATA, existing=ids[0]),)))
    await driver.delete_volume(bench.host, "default", ids[1])
    assert await driver.kept_volumes(bench.host) == []


async def test_a_kept_volume_is_as_large_as_the_machine_asks_that_takes_it(
    bench: Bench, driver: FullDriver
) -> None:
    """From the beginning: what is not grown when it is taken nobody would grow later."""
    if not bench.takes_over_volumes:
        return
    plan = bench.plan(volumes=(DATA,))
    one = (await bench.created(driver, plan)).volumes[0].id
    await bench.after(driver.delete(plan.ref), driver, plan.ref)
    larger = replace(DATA, existing=one, size_mib=96)
    heir = bench.plan("uid-2", name="db", volumes=(larger,))
    assert (await bench.created(driver, heir)).volumes[0].size_mib == 96
    await bench.after(driver.delete(heir.ref), driver, heir.ref)
    assert await driver.kept_volumes(bench.host) == [KeptVolume("default", one, 96)]


async def test_a_new_machine_does_not_get_what_another_one_has(
    bench: Bench, driver: FullDriver
) -> None:
    """With the other one off both would start, each in turn, on what the other wrote."""
    if not bench.takes_over_volumes:
        return
    plan = bench.plan(volumes=(DATA,))
    seen = await bench.created(driver, plan)
    heir = bench.plan("uid-2", name="db", volumes=(replace(DATA, existing=seen.volumes[0].id),))
    with pytest.raises(Rejected, match="attached to default/web") as refused:
        await driver.create(heir)
    assert refused.value.reason == "VolumeInUse"
    assert await driver.observe(heir.ref) is None
    await changed(bench, driver, plan)
    assert (await bench.created(driver, heir)).volumes[0].id == seen.volumes[0].id


async def test_several_machines_read_a_volume_that_none_of_them_writes(
    bench: Bench, driver: FullDriver
) -> None:
    """At the same time, and whoever writes it has it alone, whoever comes first."""
    if not bench.takes_over_volumes:
        return
    plan = bench.plan(volumes=(DATA,))
    one = (await bench.created(driver, plan)).volumes[0].id
    await bench.after(driver.delete(plan.ref), driver, plan.ref)
    write = replace(DATA, existing=one)
    read = replace(write, access=Access.READ_ONLY)
    readers = [bench.plan(f"uid-{name}", name=name, volumes=(read,)) for name in ("one", "two")]
    for reader in readers:
        await bench.created(driver, reader)
        await bench.after(driver.set_power(reader.ref, Power.ON), driver, reader.ref)
    found = await driver.machines(bench.host)
    assert [(each.power, states(each)) for each in found] == [
        (Power.ON, {"data": Attachment.ATTACHED})
    ] * 2
    assert {each.volumes[0].id for each in found} == {one}
    writer = bench.plan("uid-4", name="writer", volumes=(write,))
    for reader in readers:
        with pytest.raises(Rejected, match=r"attached to default/(one|two)") as refused:
            await driver.create(writer)
        assert refused.value.reason == "VolumeInUse"
        assert await driver.kept_volumes(bench.host) == []
        await bench.after(driver.delete(reader.ref), driver, reader.ref)
    await bench.created(driver, writer)
    with pytest.raises(Rejected, match="attached to default/writer"):
        await driver.create(readers[0])


async def test_another_namespace_cannot_take_a_kept_volume(
    bench: Bench, driver: FullDriver
) -> None:
    """Even if it knows what it is called."""
    plan = bench.plan(volumes=(DATA,))
    seen = await bench.created(driver, plan)
    await bench.after(driver.delete(plan.ref), driver, plan.ref)
    with pytest.raises(Rejected, match="no volume"):
        await driver.delete_volume(bench.host, "other", seen.volumes[0].id)
    if not bench.takes_over_volumes:
        return
    wanted = replace(DATA, existing=seen.volumes[0].id)
    thief = bench.plan("uid-2", volumes=(wanted,))
    with pytest.raises(OutOfCapacity, match="no volume"):
        await driver.create(replace(thief, ref=replace(thief.ref, namespace="other")))


async def test_what_is_to_go_with_its_machine_goes_after_it(
    bench: Bench, driver: FullDriver
) -> None:
    """Twice is once, and what was not named stays."""
    plan = bench.plan(volumes=(DATA, LOGS))
    await bench.created(driver, plan)
    await bench.after(driver.delete(plan.ref), driver, plan.ref)
    for _ in range(2):
        await driver.reclaim(plan.ref, [DATA, replace(LOGS, name="never-made")])
    await bench.kept(driver, volume_id("web", LOGS.name, "uid-1"))


async def _awaits_a_class(driver: FullDriver, plan: MachinePlan) -> None:
    """See that a machine is not made without a class, says which, and can be removed again."""
    seen = (await driver.create(plan)).seen
    assert seen is not None
    assert seen.hindered is not None
    assert seen.hindered.reason == "StorageClassNotFound"
    assert "golden" in seen.hindered.message
    assert await driver.observe(plan.ref) is None
    await driver.delete(plan.ref)


async def _takes_nothing_over(bench: Bench, driver: FullDriver) -> None:
    """See that an order for somebody's volume is refused, rather than met with an empty one."""
    again = replace(DATA, existing="somebody-s-volume")
    with pytest.raises(Unsupported, match="somebody-s-volume"):
        await driver.create(bench.plan(volumes=(again,)))
    assert await driver.observe(bench.plan().ref) is None


async def _is_kept_until_deleted(bench: Bench, driver: FullDriver) -> None:
    """See that a kept volume is told of and deleted by its id, and by nothing else."""
    plan = bench.plan(volumes=(DATA,))
    seen = await bench.created(driver, plan)
    with pytest.raises(Rejected):
        await driver.delete_volume(bench.host, bench.namespace, seen.volumes[0].id)
    await bench.after(driver.delete(plan.ref), driver, plan.ref)
    await bench.kept(driver, seen.volumes[0].id)
    await driver.delete_volume(bench.host, bench.namespace, seen.volumes[0].id)
    await bench.kept(driver)
