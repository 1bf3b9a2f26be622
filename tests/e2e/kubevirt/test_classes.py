"""MachineClasses that change while machines use them: nobody is resized unasked."""

from collections.abc import Iterator
from typing import Any

import pytest

from e2e.kubevirt.machines import MachineStage, condition

pytestmark = pytest.mark.full

Object = dict[str, Any]
RECORD = "vitistack.io/class-as-made"


@pytest.fixture
def sized(stage: MachineStage) -> Iterator[str]:
    """The name of a class that is this test's own: classes are in no namespace."""
    name = f"class-{stage.bed.namespace}"
    body = {
        "apiVersion": "vitistack.io/v1alpha1",
        "kind": "MachineClass",
        "metadata": {"name": name},
        "spec": {"cpu": {"cores": 1}, "memory": {"quantity": "2Gi"}},
    }
    stage.bed.create("machineclasses", body, "")
    yield name
    if stage.bed.get("machineclasses", name, "") is not None:
        stage.bed.delete("machineclasses", name, "")


def edit(stage: MachineStage, name: str, memory: str) -> None:
    """Have machines of a class be given other memory."""
    stage.bed.patch("machineclasses", name, {"spec": {"memory": {"quantity": memory}}}, "")


def test_a_machine_keeps_its_size_when_its_class_is_edited_until_it_is_asked_to_follow(
    stage: MachineStage, sized: str
) -> None:
    stage.declare("steady", template=sized)
    stage.until_running("steady")
    guest = stage.bed.instance("steady")["metadata"]["uid"]
    edit(stage, sized, "1Gi")
    obj = stage.until_told("steady", "ClassChanged", "True", "ClassEdited")
    assert RECORD in condition(obj, "ClassChanged")["message"]
    assert obj["status"]["size"]["memory"] == "2Gi"
    assert condition(obj, "ChangePending") == {}
    stage.declare("late", template=sized)
    assert stage.until_running("late")["status"]["size"]["memory"] == "1Gi"
    assert stage.bed.instance("steady")["metadata"]["uid"] == guest
    stage.bed.annotate("machines", "steady", RECORD, None)
    obj = stage.until("steady", lambda found: found["status"]["size"]["memory"] == "1Gi")
    stage.until("steady", lambda found: found["status"].get("memory") == 2**30)
    obj = stage.until_running("steady")
    assert condition(obj, "ClassChanged") == {}
    assert RECORD in obj["metadata"]["annotations"]


def test_a_machine_outlives_its_class_and_can_choose_another(
    stage: MachineStage, sized: str
) -> None:
    stage.declare("heir", template=sized)
    stage.until_running("heir")
    stage.bed.delete("machineclasses", sized, "")
    obj = stage.until_told("heir", "ClassChanged", "True", "ClassGone")
    assert obj["status"]["phase"] == "Running"
    stage.change("heir", template="small")
    stage.until("heir", lambda found: condition(found, "ClassChanged") == {})
    stage.until_running("heir")


def test_a_default_that_comes_later_changes_no_machine_that_said_all_itself(
    stage: MachineStage, sized: str
) -> None:
    own = {"cpu": {"cores": 1}, "memory": {"size": "2Gi"}}
    stage.declare("own", template=None, resources=own, disks=[{"name": "only", "size": "5Gi"}])
    stage.until_running("own")
    disks = [{"name": "more", "size": "1Gi"}]
    patch = {"spec": {"default": True, "disks": disks}}
    stage.bed.patch("machineclasses", sized, patch, "")
    try:
        stage.declare("other", template=None)
        stage.until_running("other")
        obj = stage.until_running("own")
        assert [each["name"] for each in obj["status"]["disks"]] == ["only"]
    finally:
        stage.bed.patch("machineclasses", sized, {"spec": {"default": False}}, "")
