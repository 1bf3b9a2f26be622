"""What affinity, tolerations and devices of a VirtualMachine mean to the core."""

from typing import Any

import pytest

from machines import virtual_machine
from novacron.core.affinity import (
    Affinity,
    HostTerm,
    MachineTerm,
    PreferredHosts,
    PreferredMachines,
    Requirement,
    Selector,
    Toleration,
)
from novacron.core.devices import HostDevice
from novacron.core.errors import Rejected
from novacron.core.machine import Machine, Resources
from novacron.core.placement import Placement
from novacron.core.wanted_device import WantedDevice
from novacron.families.novacron.translate import VirtualMachineKind

KIND = VirtualMachineKind()
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
DB = Selector((Requirement("app", "In", ("db",)),))


def stored(labels: dict[str, str] | None = None, **template: Any) -> dict[str, Any]:
    obj = virtual_machine("vm", "default", **template)
    obj["metadata"] |= {"uid": "uid-1", "generation": 1}
    obj["spec"]["template"]["metadata"] = {"labels": labels or {}}
    return obj


def translated(labels: dict[str, str] | None = None, **template: Any) -> Machine:
    return KIND.machine(stored(labels, **template))


def apart(term: dict[str, Any], labels: dict[str, str] | None = None) -> MachineTerm:
    affinity = translated(labels, affinity={"podAntiAffinity": {REQUIRED: [term]}}).affinity
    assert affinity is not None
    return affinity.apart[0]


def test_a_machine_without_rules_has_none() -> None:
    """Nothing is parsed that is not there."""
    machine = translated()
    assert (machine.affinity, machine.tolerations, machine.wanted_devices) == (None, (), ())


def test_the_specification_s_rule_is_about_its_own_namespace_and_one_host() -> None:
    """podAntiAffinity without topologyKey."""
    term = apart({"labelSelector": {"matchLabels": {"app": "db"}}})
    assert term == MachineTerm(DB, None, frozenset({"default"}))


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"topologyKey": "zone"}, MachineTerm(DB, "zone", frozenset({"default"}))),
        ({"namespaces": ["a", "b"]}, MachineTerm(DB, None, frozenset({"a", "b"}))),
        ({"namespaceSelector": {}}, MachineTerm(DB, None, frozenset(), Selector())),
        (
            {"namespaces": ["a"], "namespaceSelector": {"matchLabels": {"tier": "1"}}},
            MachineTerm(DB, None, frozenset({"a"}), Selector((Requirement("tier", "In", ("1",)),))),
        ),
        (
            {"matchLabelKeys": ["rev", "none"], "mismatchLabelKeys": ["tenant"]},
            MachineTerm(
                Selector(
                    (
                        *DB.requirements,
                        Requirement("rev", "In", ("7",)),
                        Requirement("tenant", "NotIn", ("t1",)),
                    )
                ),
                None,
                frozenset({"default"}),
            ),
        ),
    ],
    ids=["topology", "namespaces", "all namespaces", "both", "own labels"],
)
def test_terms_say_which_machines_and_how_near(more: dict[str, Any], expected: MachineTerm) -> None:
    """As Kubernetes reads them."""
    written = {"labelSelector": {"matchLabels": {"app": "db"}}, **more}
    assert apart(written, {"rev": "7", "tenant": "t1"}) == expected


def test_no_selector_is_not_an_empty_one() -> None:
    """None means no machine, an empty one every machine."""
    assert apart({}).selector is None
    assert apart({"labelSelector": {}}).selector == Selector()


def test_everything_about_hosts_and_wishes_is_read() -> None:
    """One of each."""
    ssd = {"key": "disk", "operator": "In", "values": ["ssd"]}
    name = {"key": "metadata.name", "operator": "NotIn", "values": ["old"]}
    db = {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}
    machine = translated(
        affinity={
            "nodeAffinity": {
                REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [ssd]}, {}]},
                PREFERRED: [
                    {"weight": 5, "preference": {"matchFields": [name]}},
                    {"weight": 9, "preference": {}},
                ],
            },
            "podAffinity": {REQUIRED: [db], PREFERRED: [{"weight": 3, "podAffinityTerm": db}]},
            "podAntiAffinity": {PREFERRED: [{"weight": 4, "podAffinityTerm": db}]},
        }
    )
    term = MachineTerm(Selector((Requirement("app", "Exists"),)), None, frozenset({"default"}))
    names = HostTerm(names=(Requirement("metadata.name", "NotIn", ("old",)),))
    assert machine.affinity == Affinity(
        hosts=(HostTerm((Requirement("disk", "In", ("ssd",)),)), HostTerm()),
        better_hosts=(PreferredHosts(5, names),),
        near=(term,),
        rather_near=(PreferredMachines(3, term),),
        rather_apart=(PreferredMachines(4, term),),
    )
    assert KIND.neighbour(stored(affinity={})).affinity is None


def test_a_field_that_no_host_has_is_refused_in_words() -> None:
    """The API takes any key there."""
    bad = {"key": "spec.driver", "operator": "Exists"}
    terms = {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [bad]}]}}
    with pytest.raises(Rejected, match=r"matchFields knows only metadata\.name, not spec\.driver"):
        translated(affinity={"nodeAffinity": terms})


def test_tolerations_are_read_as_kubernetes_reads_them() -> None:
    """Equal compares also the value that is not there, Exists never does."""
    machine = translated(
        tolerations=[
            {"key": "a", "value": "1", "effect": "NoSchedule"},
            {"key": "b", "operator": "Equal"},
            {"key": "c", "operator": "Exists", "tolerationSeconds": 60, "effect": "NoExecute"},
            {"operator": "Exists"},
        ]
    )
    assert machine.tolerations == (
        Toleration("a", "1", "NoSchedule"),
        Toleration("b", ""),
        Toleration("c", None, "NoExecute", 60),
        Toleration(),
    )


def test_devices_are_recorded_with_the_placement_and_then_in_the_status() -> None:
    """From the record until there is a status, with all that the driver needs."""
    wanted = {"type": "gpu", "vendor": "nvidia"}
    chosen = (HostDevice("0000:3b:00.0", "gpu", "nvidia", "tesla-t4", 1),)
    placement = Placement("a", Resources(1, 1024, 10240), chosen, "it is the only one")
    obj = KIND.placed(stored(devices=[wanted]), placement)
    machine = KIND.machine(obj)
    assert machine.wanted_devices == (WantedDevice("gpu", "nvidia"),)
    assert machine.plan().devices == machine.devices == chosen
    assert machine.placed_because == "it is the only one"
    holding = KIND.holding(obj)
    assert holding is not None
    assert holding.devices == chosen
    written = {"address": "0000:3b:00.0", "type": "gpu", "vendor": "nvidia", "model": "tesla-t4"}
    obj["status"] = {"nodeName": "b", "devices": [written]}
    moved = KIND.machine(obj)
    assert moved.devices == (HostDevice("0000:3b:00.0", "gpu", "nvidia", "tesla-t4"),)
    assert moved.placed_because == "", "the reason was about another host"
