"""Which cluster a Machine is made in, and that nobody gets into another one by writing so."""

from typing import Any

import pytest

from novacron.core.errors import Rejected
from novacron.families.viti.pin import Pin, asked_for, checked, pin_of, pinned

CONFIG, MADE_IN = "vitistack.io/kubevirt-config", "vitistack.io/made-in"


def machine(config: str | None = None, uid: str = "u", **status: Any) -> dict[str, Any]:
    """Return a Machine that asks for a cluster."""
    notes = {CONFIG: config} if config is not None else {}
    metadata = {"name": "m", "namespace": "team", "uid": uid, "annotations": notes}
    return {"metadata": metadata, "spec": {}, "status": status}


def test_a_machine_is_made_at_home_unless_it_names_a_secret_of_its_own_namespace() -> None:
    assert asked_for(machine()).address("team") == "kubevirt://"
    assert asked_for(machine("far")).address("team") == "kubevirt://team/far"


@pytest.mark.parametrize("name", ["other/far", "../x", "Far", "far#id", "kubevirt://far", " "])
def test_what_can_be_no_name_is_refused_and_leads_nowhere(name: str) -> None:
    with pytest.raises(Rejected, match="cannot be one"):
        checked(machine(name))
    assert asked_for(machine(name)) == Pin()


def test_the_record_outlives_a_change_of_mind_and_comes_with_the_finalizer() -> None:
    obj = pinned(machine("far"), "cluster-uid")
    assert obj["metadata"]["finalizers"] == ["machine.vitistack.io/cleanup"]
    obj["metadata"]["annotations"][CONFIG] = "other"
    assert pin_of(obj) == Pin("far", "cluster-uid")
    # And when somebody replaced the whole object, the status still knows.
    assert pin_of(machine("other", provider="kubevirt://far#cluster-uid")) == pin_of(obj)


def test_a_machine_at_home_is_pinned_there_too() -> None:
    obj = pinned(machine(), "")
    obj["metadata"]["annotations"][CONFIG] = "far"
    assert pin_of(obj) == Pin()


@pytest.mark.parametrize(
    "text", ["{", "7", '{"machine": "another", "secret": "theirs"}', '{"secret": "theirs"}']
)
def test_a_record_that_is_not_this_machines_counts_for_nothing(text: str) -> None:
    obj = machine("far")
    obj["metadata"]["annotations"][MADE_IN] = text
    assert pin_of(obj) is None
