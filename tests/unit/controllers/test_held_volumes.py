"""What a machine may do with volumes that another one has, of whose host its own knows nothing."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from novacron.controllers.reconciler import MachineReconciler
from novacron.core.machine import Machine, Power, Resources
from novacron.core.snapshot import RestoreOrder, SnapshotOrder, SnapshotWishes
from novacron.core.steps import Blocked
from novacron.core.volume import Access, Hold, Reclaim, StorageClass, Volume, volume_id
from novacron.drivers.simulation import SimulatedHost, SimulationDriver
from unit.controllers.stage import SIZE, World

DATA = Volume("data", 64, reclaim=Reclaim.DELETE)
WITH_DATA = replace(SIZE, disk_mib=SIZE.disk_mib + DATA.size_mib)
ID = volume_id("vm", "data", "uid-1")


@dataclass
class Others:
    """Machines of other hosts: the name of one for each volume, and how much it holds it."""

    holding: dict[str, tuple[str, Hold]] = field(default_factory=dict)

    def other(self, machine: Machine, volume: str, least: Hold) -> str | None:
        """Return who holds a volume at least so much."""
        del machine
        name, hold = self.holding.get(volume, ("", Hold.HAD))
        return name if hold >= least else None


@pytest.fixture
def others() -> Others:
    """Nobody, to begin with."""
    return Others()


@pytest.fixture
def world(tmp_path: Path, others: Others) -> World:
    """A machine that is to have a volume, beside others."""
    classes = (StorageClass("common", shared=True),)
    world = World(tmp_path, SimulatedHost("a", Resources(8, 8192, 99999), storage_classes=classes))
    world.reconciler = MachineReconciler(world, now=lambda: world.now, held=others.other)
    world.change(volumes=(DATA,), wanted=WITH_DATA, reserved=WITH_DATA)
    return world


@pytest.mark.parametrize("hold", [Hold.HAD, Hold.ASKS, Hold.WRITES])
async def test_a_volume_goes_with_its_machine_unless_another_one_has_it(
    world: World, others: Others, hold: Hold
) -> None:
    """Whose guest may run on another host, and would lose what it writes to."""
    await world.settle()
    others.holding[ID] = "heir", hold
    world.change(deleting=True)
    done = await world.settle()
    assert done.settled
    kept = [each.id for each in await world.driver.kept_volumes("a")]
    told = [each.message for each in done.happened if each.reason == "VolumeKept"]
    if hold is Hold.HAD:
        assert (kept, told) == ([], [])
    else:
        assert (kept, told) == ([ID], [f"volume {ID} stays: heir has it, or asks for it"])


@pytest.mark.parametrize("made", [False, True])
async def test_a_machine_does_not_get_a_volume_that_another_one_has(
    world: World, others: Others, made: bool
) -> None:
    """Neither when it is made nor later, but once it was let go of."""
    if made:
        world.change(volumes=(), wanted=SIZE, reserved=SIZE)
        await world.settle()
        world.change(volumes=(DATA,), wanted=WITH_DATA, reserved=WITH_DATA)
    others.holding[ID] = "first", Hold.READS
    blocked = (await world.round()).outcomes["Configured" if made else "Created"]
    assert isinstance(blocked, Blocked)
    assert (blocked.reason, blocked.after is not None) == ("VolumeInUse", True)
    assert blocked.message == (
        "volume data is attached to default/first: take it off that machine first"
    )
    others.holding[ID] = "first", Hold.ASKS
    done = await world.settle()
    assert done.seen is not None
    assert [each.id for each in done.seen.volumes] == [ID]


@pytest.mark.parametrize(
    ("access", "hold", "refused"),
    [
        (Access.MANY, Hold.WRITES, False),
        (Access.READ_ONLY, Hold.READS, False),
        (Access.READ_ONLY, Hold.WRITES, True),
        (Access.ONE_POD, Hold.READS, True),
    ],
)
async def test_several_machines_write_what_was_made_for_it_and_read_what_nobody_writes(
    world: World, others: Others, access: Access, hold: Hold, *, refused: bool
) -> None:
    """As the words for it say."""
    world.change(volumes=(replace(DATA, storage_class="common", access=access),))
    others.holding[ID] = "first", hold
    done = await world.round()
    assert (done.outcomes["Created"].reason == "VolumeInUse") is refused


async def test_what_a_machine_has_it_keeps(world: World, others: Others) -> None:
    """Whatever is on record of others, who came later."""
    await world.settle()
    others.holding[ID] = "second", Hold.WRITES
    world.change(reserved=replace(WITH_DATA, vcpus=4))
    assert (await world.settle()).settled


async def test_a_restore_is_told_which_volumes_are_others_by_now(
    world: World, others: Others, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only its driver knows which disks the snapshot is of."""
    orders: list[RestoreOrder] = []
    restore = SimulationDriver.restore_snapshot

    async def noted(self: SimulationDriver, ref: object, order: RestoreOrder) -> object:
        orders.append(order)
        return await restore(self, ref, order)  # type: ignore[arg-type]

    monkeypatch.setattr(SimulationDriver, "restore_snapshot", noted)
    world.change(power=Power.OFF, snapshots=SnapshotWishes(wanted=(SnapshotOrder("one"),)))
    await world.settle()
    world.change(volumes=())
    await world.settle()
    others.holding[ID] = "heir", Hold.WRITES
    world.change(snapshots=SnapshotWishes(restore=RestoreOrder("one", "r1")))
    await world.settle()
    assert [each.elsewhere for each in orders[:1]] == [{ID: "heir"}]
