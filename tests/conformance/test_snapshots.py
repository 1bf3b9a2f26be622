"""What every driver that keeps snapshots does with them."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

import pytest

from conformance.under_test import STEP, Bench, FullDriver
from novacron.core.driver import Accepted, Capability
from novacron.core.errors import Rejected
from novacron.core.machine import MachinePlan, MachineRef, Power
from novacron.core.snapshot import RestoreOrder, Snapshot, SnapshotOrder, Snapshots


class Snapshotting(FullDriver, Snapshots, Protocol):
    """A driver that keeps snapshots."""


@pytest.fixture
def keeper(driver: FullDriver) -> Snapshotting:
    """The driver under test, if it keeps snapshots."""
    if Capability.SNAPSHOTS not in driver.capabilities:
        pytest.skip("keeps no snapshots")
    assert isinstance(driver, Snapshots)
    return driver  # type: ignore[return-value]


async def there(driver: Snapshotting, ref: MachineRef) -> dict[str, Snapshot]:
    """Return all snapshots by name."""
    return {each.name: each for each in await driver.snapshots(ref)}


async def carried_out(
    bench: Bench, order: Callable[[], Awaitable[Accepted]], is_done: Callable[[], Awaitable[bool]]
) -> None:
    """Give an order, and again only while nothing has come of it: that is another errand."""
    await order()
    for _ in range(60):
        if await is_done():
            return
        await bench.pass_time(STEP)
        if not await is_done():
            await order()  # whoever waits asks whether it failed
    raise AssertionError(f"nothing came of {order}")


async def taken(
    bench: Bench, driver: Snapshotting, plan: MachinePlan, order: SnapshotOrder
) -> Snapshot:
    """Take a snapshot and return it."""

    async def is_there() -> bool:
        return order.name in await there(driver, plan.ref)

    await carried_out(bench, partial(driver.take_snapshot, plan.ref, order), is_there)
    return (await there(driver, plan.ref))[order.name]


async def restored(
    bench: Bench, driver: Snapshotting, plan: MachinePlan, order: RestoreOrder
) -> None:
    """Go back to a snapshot."""

    async def is_back() -> bool:
        return (await there(driver, plan.ref))[order.snapshot].restored == order.request

    await carried_out(bench, partial(driver.restore_snapshot, plan.ref, order), is_back)


async def removed(bench: Bench, driver: Snapshotting, plan: MachinePlan, name: str) -> None:
    """Remove a snapshot."""

    async def is_gone() -> bool:
        return name not in await there(driver, plan.ref)

    await carried_out(bench, partial(driver.remove_snapshot, plan.ref, name), is_gone)


async def test_a_stopped_machine_has_one_snapshot_for_each_name(
    bench: Bench, keeper: Snapshotting
) -> None:
    """An order that is given again, perhaps by another process, is the same order."""
    plan = bench.plan()
    await bench.created(keeper, plan)
    first = await taken(bench, keeper, plan, SnapshotOrder("one"))
    assert not first.memory
    assert first.size_bytes is not None
    other = bench.connect()
    assert isinstance(other, Snapshots)
    await other.take_snapshot(plan.ref, SnapshotOrder("one"))
    await taken(bench, keeper, plan, SnapshotOrder("two", memory=True))
    found = await there(keeper, plan.ref)
    assert sorted(found) == ["one", "two"]
    assert found["one"] == first
    assert not found["two"].memory, "a machine that is off has no memory to keep"


async def test_a_running_machine_stays_so_and_goes_back_with_its_memory_or_off(
    bench: Bench, keeper: Snapshotting
) -> None:
    """With memory it goes on where it was; without, it has to be started."""
    plan = bench.plan()
    await bench.created(keeper, plan)
    await bench.after(keeper.set_power(plan.ref, Power.ON), keeper, plan.ref)
    disks = await taken(bench, keeper, plan, SnapshotOrder("disks"))
    if not bench.keeps_memory:
        await _goes_back_off_and_refuses_memory(bench, keeper, plan)
        return
    memory = await taken(bench, keeper, plan, SnapshotOrder("memory", memory=True))
    assert (disks.memory, memory.memory) == (False, True)
    assert (memory.size_bytes or 0) > (disks.size_bytes or 0)
    seen = await bench.settled(keeper, plan.ref)
    assert seen is not None
    assert seen.power is Power.ON

    await restored(bench, keeper, plan, RestoreOrder("disks", "r1"))
    seen = await bench.settled(keeper, plan.ref)
    assert seen is not None
    assert (seen.power, seen.drifted, seen.ended) == (Power.OFF, None, None)
    await restored(bench, keeper, plan, RestoreOrder("memory", "r2"))
    seen = await bench.settled(keeper, plan.ref)
    assert seen is not None
    assert seen.power is Power.ON
    assert sorted(await there(keeper, plan.ref)) == ["disks", "memory"]


async def _goes_back_off_and_refuses_memory(
    bench: Bench, keeper: Snapshotting, plan: MachinePlan
) -> None:
    with pytest.raises(Rejected, match="memory"):
        await keeper.take_snapshot(plan.ref, SnapshotOrder("memory", memory=True))
    seen = await bench.settled(keeper, plan.ref)
    assert seen is not None
    assert seen.power is Power.ON
    await restored(bench, keeper, plan, RestoreOrder("disks", "r1"))
    seen = await bench.settled(keeper, plan.ref)
    assert seen is not None
    assert (seen.power, seen.drifted, seen.ended) == (Power.OFF, None, None)
    assert sorted(await there(keeper, plan.ref)) == ["disks"]


async def test_a_request_goes_back_once_however_often_it_is_made(
    bench: Bench, keeper: Snapshotting
) -> None:
    """Whoever asks again after a crash must not undo what was done since."""
    plan = bench.plan()
    await bench.created(keeper, plan)
    await taken(bench, keeper, plan, SnapshotOrder("one"))
    await restored(bench, keeper, plan, RestoreOrder("one", "r1"))
    await bench.after(keeper.set_power(plan.ref, Power.ON), keeper, plan.ref)
    again = bench.connect()
    assert isinstance(again, Snapshots)
    await again.restore_snapshot(plan.ref, RestoreOrder("one", "r1"))
    seen = await bench.settled(keeper, plan.ref)
    assert seen is not None
    assert seen.power is Power.ON
    await restored(bench, keeper, plan, RestoreOrder("one", "r2"))
    seen = await bench.settled(keeper, plan.ref)
    assert seen is not None
    assert seen.power is Power.OFF


async def test_what_is_not_there_is_removed_at_once_and_never_restored(
    bench: Bench, keeper: Snapshotting
) -> None:
    """A removal may be repeated; a restore names what is missing."""
    plan = bench.plan()
    await bench.created(keeper, plan)
    await taken(bench, keeper, plan, SnapshotOrder("one"))
    await removed(bench, keeper, plan, "one")
    await removed(bench, keeper, plan, "one")
    with pytest.raises(Rejected, match="no snapshot one"):
        await keeper.restore_snapshot(plan.ref, RestoreOrder("one", "r1"))


async def test_snapshots_go_with_their_machine(bench: Bench, keeper: Snapshotting) -> None:
    """A machine made anew under the same UID begins with none."""
    plan = bench.plan()
    await bench.created(keeper, plan)
    await taken(bench, keeper, plan, SnapshotOrder("one"))
    await bench.after(keeper.delete(plan.ref), keeper, plan.ref)
    assert not await keeper.snapshots(plan.ref)
    await bench.created(keeper, plan)
    assert not await keeper.snapshots(plan.ref)
