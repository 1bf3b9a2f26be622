"""Our own records that an owner took away before anything was done, and puts back much later."""

from dataclasses import replace
from pathlib import Path

import pytest

from machines import virtual_machine
from novacron.controllers.reconciler import MachineReconciler
from novacron.controllers.summary import summarise
from novacron.core.machine import Machine, Resources
from novacron.core.move import MoveResult
from novacron.core.placement import Placement
from novacron.families.novacron.placement_record import PLACEMENT
from novacron.families.novacron.translate import VirtualMachineKind
from novacron.families.seal import Seal
from novacron.runtime.resource import Key, Object
from unit.controllers.office import Office
from unit.controllers.pair import Hosts
from unit.controllers.stage import World

KIND = VirtualMachineKind(Seal(b"k" * 32))


def asked_for(name: str, cpu: int) -> Object:
    body = virtual_machine(name, "n", cpu=cpu)
    body["metadata"] |= {"uid": name, "generation": 1, "annotations": {}}
    return body | {"status": {}}


def there(name: str, cpu: int, host: str) -> Object:
    has = {"cpu": {"available": str(cpu)}, "memory": {"available": "1Gi"}}
    return asked_for(name, cpu) | {"status": {"nodeName": host, "resources": has}}


def crowded() -> tuple[Office, Object, Machine]:
    """A host of eight CPUs that another machine has, and one that was promised them before."""
    office = Office()
    office.ledger.follow_machines(office.machines, KIND)
    office.add_host("a")
    first = KIND.placed(asked_for("m", 8), Placement("a", Resources(8, 1024, 10240)))
    for obj in (first, there("other", 8, "a")):
        office.machines.seen(office.paper.numbered(obj))
    found = office.machines.get(Key("n", "m"))
    assert found is not None
    return office, found, KIND.machine(found)


async def test_room_that_was_given_to_another_one_since_is_not_had(tmp_path: Path) -> None:
    """The seal tells that it was our word once, not that it still is."""
    office, obj, machine = crowded()
    world = World(tmp_path)
    world.machine = machine
    world.reconciler = MachineReconciler(world, overdrawn=office.ledger.overdrawn)
    done = await world.round()
    assert done.refused
    assert done.outcomes["Created"].message == "host a has less CPU than was promised of it"
    assert await world.driver.machines("a") == []
    status = KIND.status(obj, machine, summarise(machine, done, world.now, write_usage=False))
    again = {**obj, "status": {name: value for name, value in status.items() if value}}
    assert PLACEMENT in again["metadata"]["annotations"]
    assert KIND.machine(again).host is None  # nor is it ever again


async def test_a_machine_that_was_made_already_is_not_turned_away(tmp_path: Path) -> None:
    """Whoever made it died before that was written down, so the first round looks at nothing."""
    office, _, machine = crowded()
    world = World(tmp_path)
    world.machine = replace(machine, promised=False)
    assert (await world.round()).settled
    world.machine = machine
    world.reconciler = MachineReconciler(world, overdrawn=office.ledger.overdrawn)
    done = await world.round()
    assert not done.refused
    assert done.settled
    assert len(await world.driver.machines("a")) == 1


async def test_a_machine_that_is_there_keeps_what_it_has(tmp_path: Path) -> None:
    """A host may have less than it had: nobody has to go for that."""
    office, _, machine = crowded()
    world = World(tmp_path)
    world.machine = replace(machine, promised=False)
    world.reconciler = MachineReconciler(world, overdrawn=office.ledger.overdrawn)
    assert not (await world.round()).refused


@pytest.mark.parametrize("lost", [False, True])
async def test_a_move_to_room_that_another_one_has_does_not_begin(
    tmp_path: Path, *, lost: bool
) -> None:
    """Nothing is done for it, and it is over."""
    hosts, office = Hosts(tmp_path), Office()
    await hosts.settle()
    if lost:
        hosts.lose("a")
    hosts.order(live=not lost, lost=lost)
    assert hosts.machine.move is not None
    office.ledger.follow_machines(office.machines, KIND)
    office.add_host("b")
    obj = there("vm", 2, "a")
    obj["metadata"] |= {"uid": "uid-1", "resourceVersion": "1"}
    moving = KIND.moving(obj, Placement("a", Resources(2, 1024, 10240)), hosts.machine.move)
    for each in (moving, there("other", 8, "b")):
        office.machines.seen(office.paper.numbered(each))
    reconciler = MachineReconciler(hosts, overdrawn=office.ledger.overdrawn)
    done = await reconciler.reconcile(hosts.machine)
    assert done.move is not None
    assert (done.move.result, done.move.reason) == (MoveResult.FAILED, "HostFull")
    assert [host for host, _ in hosts.where()] == ["a"]
