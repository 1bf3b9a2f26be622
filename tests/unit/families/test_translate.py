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
from novacron.core.machine import Observed, Power, Resources, Usage
from novacron.core.placement import Placement
from novacron.core.report import MachineReport, Phase
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
