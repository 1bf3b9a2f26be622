"""What objects of novacron.io mean to the core, and what is written back into them."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from machines import host, virtual_machine
from novacron.core.conditions import Condition
from novacron.core.errors import Rejected
from novacron.core.host import ClassFacts, HostFacts, HostReport, Overcommit, StorageRoom
from novacron.core.machine import Observed, Power, Resources, Usage
from novacron.core.placement import Placement
from novacron.core.report import MachineReport, Phase
from novacron.core.resources import Share
from novacron.core.volume import KeptVolume, volume_id
from novacron.families.novacron.host_translate import HostKind
from novacron.families.novacron.translate import PLACEMENT, VirtualMachineKind

Object = dict[str, Any]

KIND = VirtualMachineKind()
SIZE = Resources(1, 1024, 10240)
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def stored(uid: str = "uid-1", **template: Any) -> Object:
    """A machine as the server has it."""
    obj = virtual_machine("vm", "default", **template)
    obj["metadata"] |= {"uid": uid, "generation": 1, "resourceVersion": "5"}
    return obj


def report(**fields: Any) -> MachineReport:
    """What a round found out."""
    usual: Object = {
        "phase": Phase.RUNNING,
        "host": "a",
        "reserved": SIZE,
        "refused_hosts": frozenset(),
        "seen": Observed("uid-1", "sim-1", Power.ON, SIZE, usage=Usage(0.25, 512, 1024)),
        "conditions": (),
    }
    return MachineReport(**(usual | fields))


def test_a_record_tells_where_the_machine_will_be_until_the_status_does() -> None:
    """It is written together with the finalizer, before anything is made."""
    placed = KIND.placed(stored(), Placement("a", SIZE))
    assert placed["metadata"]["finalizers"] == [KIND.finalizer]
    machine = KIND.machine(placed)
    assert (machine.host, machine.reserved) == ("a", SIZE)
    placed["status"] = {"nodeName": "b", "reservation": {"cpu": 2, "memory": "1Gi", "disk": "9Gi"}}
    assert KIND.machine(placed).host == "b"


def test_a_machine_is_unseen_until_some_host_told_of_it() -> None:
    """A host that fell silent before has it by name only."""
    silent = KIND.status(stored(), KIND.machine(stored()), report(seen=None))
    told = KIND.status(stored(), KIND.machine(stored()), report())
    assert [KIND.machine({**stored(), "status": it}).unseen for it in (silent, told)] == [
        True,
        False,
    ]


def test_a_machine_is_abandoned_by_one_word_alone() -> None:
    """What is let go for good is not to be let go by a slip of the keyboard."""
    said = [stored() for _ in range(3)]
    for obj, word in zip(said, ("true", "false", "yes"), strict=True):
        obj["metadata"]["annotations"] = {"novacron.io/abandon": word}
    assert [KIND.machine(obj).abandoned for obj in said] == [True, False, False]


def test_a_record_of_another_object_is_not_ours() -> None:
    """Copied manifests carry annotations along."""
    copied = KIND.placed(stored("uid-1"), Placement("a", SIZE))
    copied["metadata"]["uid"] = "uid-2"
    assert KIND.holding(copied) is None


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "{}", '{"uid": "uid-1", "host": "a"}'])
def test_a_record_that_somebody_wrote_into_is_none(text: str) -> None:
    """The placer then asks the hosts."""
    obj = stored()
    obj["metadata"]["annotations"] = {PLACEMENT: text}
    assert KIND.machine(obj).host is None


def test_a_record_of_a_host_that_refused_is_void() -> None:
    """Until the placer writes another."""
    obj = KIND.placed(stored(), Placement("a", SIZE)) | {"status": {"refusedHosts": ["a"]}}
    assert KIND.machine(obj).host is None


def test_taking_the_placement_back_leaves_what_others_wrote() -> None:
    """Their finalizers and annotations are theirs."""
    obj = stored()
    obj["metadata"] |= {"finalizers": ["other/one"], "annotations": {"mine": "yes"}}
    back = KIND.unplaced(KIND.placed(obj, Placement("a", SIZE)))
    assert back["metadata"]["finalizers"] == ["other/one"]
    assert back["metadata"]["annotations"] == {"mine": "yes"}


def test_a_machine_that_shrinks_holds_what_it_still_has() -> None:
    """Its room is given to others when it has shrunk, not when it is asked to."""
    obj = stored()
    obj["status"] = KIND.status(obj, KIND.machine(obj), report())
    obj["status"]["reservation"] = {"cpu": 1, "memory": "512Mi", "disk": "10Gi"}
    holding = KIND.holding(obj)
    assert holding is not None
    assert holding.resources == SIZE
    assert KIND.machine(obj).reserved == Resources(1, 512, 10240)


def test_an_object_that_is_not_as_its_definition_says_is_rejected() -> None:
    """It may have been stored under an older one."""
    obj = stored()
    del obj["spec"]["template"]["spec"]["resources"]["cpu"]
    with pytest.raises(Rejected, match="cpu"):
        KIND.machine(obj)


def test_a_host_is_what_its_spec_says_with_the_usual_for_the_rest() -> None:
    """Labels, taints, overcommit and the driver's own section."""
    obj = host("a", taints=[{"key": "k", "effect": "NoSchedule"}], overcommit={"cpu": 2})
    obj["metadata"] |= {"uid": "u", "generation": 1}
    declared = HostKind().host(obj)
    assert declared.settings["capacity"]["cpu"] == 1000
    assert str(declared.taints[0]) == "k:NoSchedule"
    assert declared.overcommit.of(Resources(2, 4, 6)) == Resources(4, 4, 6)
    assert not declared.seen_by_scheduler().ready


conditions = st.lists(
    st.builds(
        Condition,
        type=st.sampled_from(["Ready", "Placed", "LiveMigratable", "Foreign"]),
        status=st.sampled_from(["True", "False", "Unknown"]),
        reason=st.text(min_size=1, max_size=8),
        message=st.text(max_size=8),
        probed=st.integers(0, 10**6).map(lambda s: NOON + timedelta(seconds=s)),
        since=st.integers(0, 10**6).map(lambda s: NOON + timedelta(seconds=s)),
    ),
    unique_by=lambda condition: condition.type,
).map(tuple)
sizes = st.builds(Resources, st.integers(1, 512), st.integers(512, 2**20), st.integers(1024, 2**24))


@given(conditions=conditions, reserved=sizes, has=sizes, memory=st.integers(0, 2**20))
def test_what_is_written_is_read_back(
    conditions: tuple[Condition, ...], reserved: Resources, has: Resources, memory: int
) -> None:
    """Otherwise every round would find a difference and write it."""
    seen = Observed("uid-1", "sim-1", Power.ON, has, usage=Usage(0.5, memory, 7))
    obj = stored()
    obj["status"] = json.loads(
        json.dumps(
            KIND.status(
                obj,
                KIND.machine(obj),
                report(conditions=conditions, reserved=reserved, seen=seen, write_usage=True),
            )
        )
    )
    machine = KIND.machine(obj)
    assert machine.conditions == conditions
    assert (machine.host, machine.reserved) == ("a", reserved)
    assert machine.usage == seen.usage
    holding = KIND.holding(obj)
    assert holding is not None
    assert holding.resources == reserved.covering(has)
    again = KIND.status(obj, machine, report(conditions=conditions, reserved=reserved, seen=seen))
    assert {name: value for name, value in again.items() if value is not None} == {
        name: value for name, value in obj["status"].items() if value is not None
    }


def with_volumes(*classes: str | None) -> Object:
    """A machine with a volume of 1Gi of each class."""
    volumes = [
        {"name": f"v{n}", "size": "1Gi", **({"storageClass": each} if each else {})}
        for n, each in enumerate(classes)
    ]
    return stored(volumes=volumes)


def test_volumes_of_classes_are_wanted_one_by_one_and_others_with_the_disk() -> None:
    """Each by its class and its id, by which another machine may have it too."""
    obj = with_volumes("fast", None, "slow")
    wanted = KIND.machine(obj).wanted
    assert (wanted.disk_mib, wanted.vcpus) == (11264, 1)
    first, second = volume_id("vm", "v0", "uid-1"), volume_id("vm", "v2", "uid-1")
    assert wanted.shares == (Share("fast", first, 1024), Share("slow", second, 1024))


def test_what_is_reserved_of_classes_is_in_the_record_and_in_the_status() -> None:
    """Whoever reads either knows what the machine holds."""
    obj = with_volumes("fast")
    wanted = KIND.machine(obj).wanted
    placed = KIND.placed(obj, Placement("a", wanted))
    assert KIND.machine(placed).reserved == wanted
    assert KIND.holding(placed).resources == wanted
    placed["status"] = KIND.status(placed, KIND.machine(placed), report(reserved=wanted))
    del placed["metadata"]["annotations"]
    assert KIND.machine(placed).reserved == wanted


def test_a_volume_of_a_class_that_was_taken_off_is_wanted_still() -> None:
    """It is kept, and takes room until somebody deletes it."""
    obj = with_volumes()
    gone = {"id": "vm.old-1a2b3c4d", "name": "old", "size": "2Gi", "storageClass": "fast"}
    obj["status"] = {"nodeName": "a", "volumes": [{**gone, "state": "Detached"}]}
    shares = (Share("fast", "vm.old-1a2b3c4d", 2048),)
    assert KIND.machine(obj).wanted.shares == shares
    assert KIND.holding(obj).resources.shares == shares


def test_a_record_from_before_classes_were_reserved_holds_what_the_machine_has() -> None:
    """Nothing of it is asked for anew, and nothing is given to others."""
    obj = with_volumes("fast")
    one = {"id": volume_id("vm", "v0", "uid-1"), "name": "v0", "size": "1Gi"}
    obj["status"] = {
        "nodeName": "a",
        "reservation": {"cpu": 1, "memory": "1Gi", "disk": "10Gi"},
        "volumes": [{**one, "storageClass": "fast", "state": "Attached"}],
    }
    machine = KIND.machine(obj)
    assert machine.reserved == machine.wanted
    assert machine.plan().volumes == machine.volumes
    assert KIND.holding(obj).resources == machine.wanted


def test_a_volume_of_a_class_is_made_only_when_it_is_granted() -> None:
    """Until then those that the machine has are left alone."""
    obj = with_volumes("fast")
    obj["status"] = {"nodeName": "a", "reservation": {"cpu": 1, "memory": "1Gi", "disk": "10Gi"}}
    plan = KIND.machine(obj).plan()
    assert (plan.volumes, plan.resources) == (None, SIZE)


def test_what_a_host_has_of_classes_comes_back_from_its_status() -> None:
    """Its own storage is one of them where others may see it."""
    obj = host("a")
    obj["metadata"] |= {"uid": "u", "generation": 1}
    kept = (KeptVolume("default", "x.y-1", 100, "fast"), KeptVolume("default", "z.y-1", 50))
    facts = HostFacts(
        "a",
        Resources(1, 1024, 1000),
        kept_volumes=kept,
        own_storage="nas",
        foreign_mib=30,
        classes=(
            ClassFacts("fast", 1000, 200, "nfs"),
            ClassFacts("slow", 10),
            ClassFacts("shut", 0, trouble="there is no storage pool"),
        ),
    )
    overcommit = Overcommit(disk=2)
    allocatable, rooms = facts.allocatable(overcommit), facts.rooms(overcommit)
    assert allocatable.disk_mib == 2000 - 50 - 30
    assert rooms == (
        StorageRoom("fast", 2000 - 100 - 200, "nfs"),
        StorageRoom("slow", 20),
        StorageRoom("shut", 0, trouble="there is no storage pool"),
    )
    told = HostReport((), facts, allocatable, 0, rooms)
    obj["status"] = HostKind().status(obj, told)
    seen = HostKind().host(obj).seen_by_scheduler()
    assert seen.storage == (StorageRoom("", 1920, "nas"), *rooms)
