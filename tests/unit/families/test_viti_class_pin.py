"""What a Machine's class said when it was made counts, whatever becomes of the class."""

from typing import Any

import orjson
import pytest

from novacron.families.viti.class_pin import (
    base_for,
    class_changed,
    is_recorded,
    recorded,
)
from novacron.families.viti.marks import CLASS_AS_MADE

BIG = {"cpu": {"cores": 4}, "memory": {"quantity": "8Gi"}, "disks": [{"name": "a", "size": "1Gi"}]}
SMALLER = {**BIG, "memory": {"quantity": "4Gi"}}


def machine(record: dict[str, str] | None = None, uid: str = "u", **spec: Any) -> dict[str, Any]:
    """Return a Machine that asks for a class."""
    metadata = {"name": "m", "namespace": "team", "uid": uid, "annotations": record or {}}
    return {"metadata": metadata, "spec": spec or {"template": "big"}}


def test_what_was_recorded_counts_and_what_the_class_says_now_is_told() -> None:
    record = recorded(machine(), {"big": BIG})
    made = machine(record)
    assert base_for(made, {"big": SMALLER}).memory == "8Gi"
    assert base_for(made, {}).disks == ({"name": "a", "size": "1Gi"},)
    assert class_changed(made, {"big": BIG}) is None
    edited, gone = class_changed(made, {"big": SMALLER}), class_changed(made, {})
    assert edited is not None
    assert gone is not None
    assert (edited.reason, gone.reason) == ("ClassEdited", "ClassGone")


def test_a_class_that_is_disabled_says_the_same_as_before_to_those_who_have_it() -> None:
    made = machine(recorded(machine(), {"big": BIG}))
    assert class_changed(made, {"big": {**BIG, "enabled": False}}) is None


def test_asking_for_another_class_is_asking_anew() -> None:
    record = recorded(machine(), {"big": BIG})
    other = machine(record, template="other")
    assert not is_recorded(other)
    assert base_for(other, {"other": SMALLER}).memory == "4Gi"


def test_a_built_in_template_needs_no_record() -> None:
    assert recorded(machine(template="small"), {}) == {}
    assert is_recorded(machine(template="small"))


def test_a_default_that_comes_later_is_nothing_to_a_machine_without_one() -> None:
    bare = machine(resources={"cpu": {"cores": 1}, "memory": {"size": "1Gi"}})
    made = machine(recorded(bare, {}), **bare["spec"])
    assert base_for(made, {"big": {**BIG, "default": True}}).disks == ()


def test_upstreams_small_stays_the_built_in_one_when_a_class_of_that_name_comes() -> None:
    made = machine(recorded(machine(machineClass="small"), {}), machineClass="small")
    assert base_for(made, {"small": BIG}).memory == "2Gi"


@pytest.mark.parametrize(
    "text",
    ["{", "7", "[]", '{"machine": "u"}', '{"machine": "u", "asked": "big", "class": {"x": 1}}'],
)
def test_a_record_that_makes_no_sense_counts_for_nothing(text: str) -> None:
    assert not is_recorded(machine({CLASS_AS_MADE: text}))


def test_a_record_that_was_copied_from_another_machine_counts_for_nothing() -> None:
    record = recorded(machine(), {"big": BIG})
    assert orjson.loads(record[CLASS_AS_MADE])["machine"] == "u"
    assert not is_recorded(machine(record, uid="another"))
