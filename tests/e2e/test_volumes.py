"""Volumes from the API server to a simulated host and back."""

from pathlib import Path

import pytest
import yaml

from api import Refused
from e2e.conftest import Stage
from machines import Object, condition, virtual_machine

EXAMPLES = Path(__file__).parents[2] / "examples"
DATA = {"name": "data", "size": "100Gi"}


def volumes(obj: Object) -> dict[str, str]:
    """Return the state of each volume."""
    return {each["name"]: each["state"] for each in obj["status"].get("volumes") or []}


def change(stage: Stage, name: str, *wanted: Object) -> None:
    """Give a machine other volumes."""
    patch = {"spec": {"template": {"spec": {"volumes": list(wanted)}}}}
    stage.api.patch_machine(stage.namespace, name, patch)


def test_volumes_on_the_hosts_own_disk_are_reserved_there(stage: Stage) -> None:
    """Also what was taken off, and more than fits is refused while the rest goes on."""
    host = stage.add_host(disk="250Gi")
    stage.api.create(virtual_machine("roomy", stage.namespace, on=host, volumes=[DATA]))
    obj = stage.until_running("roomy")
    assert volumes(obj) == {"data": "Attached"}
    assert obj["status"]["reservation"]["disk"] == "110Gi"
    assert obj["status"]["resources"]["disk"]["available"] == "10Gi", "the first disk"
    change(stage, "roomy")
    obj = stage.until("roomy", lambda obj: volumes(obj) == {"data": "Detached"})
    assert obj["status"]["reservation"]["disk"] == "110Gi"
    change(stage, "roomy", {"name": "more", "size": "200Gi"})
    obj = stage.until("roomy", lambda obj: condition(obj, "Placed").get("status") == "False")
    assert "lacks disk" in condition(obj, "Placed")["message"]
    assert (obj["status"]["phase"], volumes(obj)) == ("Running", {"data": "Detached"})
    change(stage, "roomy", DATA)
    stage.until("roomy", lambda obj: volumes(obj) == {"data": "Attached"})


def test_a_machine_goes_to_the_host_that_has_its_class_and_its_kept_volume(stage: Stage) -> None:
    """Until there is one it waits, and says what to set."""
    first, second = stage.add_host(labels={"zone": "v"}), stage.add_host(labels={"zone": "v"})
    fast = {**DATA, "storageClass": "fast-ssd"}
    body = virtual_machine("picky", stage.namespace, volumes=[fast])
    body["spec"]["template"]["spec"]["nodeSelector"] = {"zone": "v"}
    stage.api.create(body)
    obj = stage.until("picky", lambda obj: condition(obj, "Ready").get("status") == "False")
    obj = stage.until("picky", lambda obj: "fast-ssd" in condition(obj, "Ready")["message"])
    classes = {"simulation": {"storageClasses": [{"name": "fast-ssd"}]}}
    stage.api.patch_host(second, {"spec": classes})
    obj = stage.until_running("picky")
    assert obj["status"]["nodeName"] == second
    kept = obj["status"]["volumes"][0]["id"]
    stage.api.delete_machine(stage.namespace, "picky")
    stage.until_gone("picky")

    body["metadata"] = {"name": "heir", "namespace": stage.namespace}
    body["spec"]["template"]["spec"]["volumes"] = [{**fast, "existing": kept}]
    stage.api.create(body)
    obj = stage.until_running("heir")
    assert (obj["status"]["nodeName"], volumes(obj)) == (second, {"data": "Attached"})
    assert obj["status"]["volumes"][0]["id"] == kept
    assert first != second


def test_only_what_is_to_go_with_its_machine_goes(stage: Stage) -> None:
    """By what its owner said last."""
    host = stage.add_host()
    scratch = {"name": "scratch", "size": "1Gi", "reclaimPolicy": "Delete"}
    spared = {"name": "spared", "size": "1Gi", "reclaimPolicy": "Delete"}
    wanted = [DATA, scratch, spared]
    stage.api.create(virtual_machine("owner", stage.namespace, on=host, volumes=wanted))
    stage.until_running("owner")
    change(stage, "owner", DATA, scratch, {**spared, "reclaimPolicy": "Retain"})
    stage.api.delete_machine(stage.namespace, "owner")
    stage.until_gone("owner")
    with stage.world() as world:
        kept = [each for each in world.kept_volumes() if each.namespace == stage.namespace]
    names = {each.id.rpartition("-")[0] for each in kept if each.id.startswith("owner.")}
    assert names == {"owner.data", "owner.spared"}


def test_what_a_machine_of_another_host_has_is_neither_given_away_nor_deleted(stage: Stage) -> None:
    """Its own host knows nothing of that one; whoever follows all machines does."""
    one, other = stage.add_host(), stage.add_host()
    scratch = {"name": "scratch", "size": "1Gi", "reclaimPolicy": "Delete"}
    stage.api.create(virtual_machine("maker", stage.namespace, on=one, volumes=[scratch]))
    volume = stage.until_running("maker")["status"]["volumes"][0]["id"]
    taking = {"name": "scratch", "size": "1Gi", "existing": volume}
    stage.api.create(virtual_machine("taker", stage.namespace, on=other, volumes=[taking]))
    obj = stage.until("taker", lambda obj: condition(obj, "Created").get("status") == "False")
    assert condition(obj, "Created")["reason"] == "VolumeInUse"
    assert f"{stage.namespace}/maker" in condition(obj, "Created")["message"]
    stage.api.delete_machine(stage.namespace, "maker")
    stage.until_gone("maker")
    assert volume in stage.until_event("maker", "VolumeKept")["message"]
    with stage.world() as world:
        assert volume in {each.id for each in world.kept_volumes()}


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        (DATA, {**DATA, "size": "50Gi"}, "volumes can grow but never shrink"),
        (DATA, {**DATA, "storageClass": "x"}, "storageClass of a volume cannot change"),
        (DATA, {**DATA, "accessMode": "ReadWriteMany"}, "accessMode of a volume cannot change"),
        (DATA, {**DATA, "existing": "a.b-0123abcd"}, "existing of a volume cannot change"),
        (None, {**DATA, "existing": "other"}, "must be the id of a volume"),
        (
            None,
            {**DATA, "existing": "a.b-0123abcd", "reclaimPolicy": "Delete"},
            "is not deleted with it",
        ),
        (None, {**DATA, "accessMode": "ReadOnlyMany"}, "ReadOnlyMany needs existing"),
        (None, {**DATA, "accessMode": "ReadWriteMany"}, "ReadWriteMany needs a storageClass"),
        (None, {**DATA, "reclaimPolicy": "Recycle"}, 'supported values: "Delete", "Retain"'),
    ],
)
def test_the_api_says_what_a_volume_cannot_be(
    stage: Stage, before: Object | None, after: Object, sentence: str
) -> None:
    """In one sentence, before anybody acts on it."""
    had = [before] if before else []
    body = virtual_machine("never", stage.namespace, on="nowhere", volumes=had)
    stage.api.create(body)
    with pytest.raises(Refused, match=sentence):
        change(stage, "never", after)


def refused(stage: Stage, name: str) -> str:
    """Wait until a machine does not get what it asks for, and return why."""
    obj = stage.until(name, lambda obj: condition(obj, "Placed").get("status") == "False")
    message: str = condition(obj, "Placed")["message"]
    return message


def test_volumes_of_a_class_are_reserved_where_the_class_is(stage: Stage) -> None:
    """Any number of large volumes would else go into one pool: placed, added or grown."""
    fast = {"name": "data", "size": "500Gi", "storageClass": "fast"}
    host = stage.add_host(simulation={"storageClasses": [{"name": "fast", "size": "600Gi"}]})
    stage.api.create(virtual_machine("holder", stage.namespace, on=host, volumes=[fast]))
    obj = stage.until_running("holder")
    reserved = obj["status"]["reservation"]["volumes"]
    assert [(each["storageClass"], each["size"]) for each in reserved] == [("fast", "500Gi")]
    change(stage, "holder", fast, {**fast, "name": "more", "size": "101Gi"})
    said = refused(stage, "holder")
    assert "lacks storage of class fast (103424 MiB more asked, 102400 free)" in said
    obj = stage.until_running("holder")
    assert volumes(obj) == {"data": "Attached"}
    change(stage, "holder", {**fast, "size": "600Gi"})
    stage.until("holder", lambda obj: obj["status"]["volumes"][0]["size"] == "600Gi")

    stage.api.create(virtual_machine("late", stage.namespace, on=host, volumes=[fast]))
    assert "lacks storage of class fast (512000 MiB asked, 0 free)" in refused(stage, "late")
    change(stage, "holder")
    stage.until("holder", lambda obj: volumes(obj) == {"data": "Detached"})
    assert condition(stage.api.machine(stage.namespace, "late") or {}, "Placed"), "it waits"
    stage.api.patch_host(host, {"spec": {"overcommit": {"disk": 2}}})
    stage.until_running("late")


def test_hosts_that_share_a_class_share_its_room_and_a_move_takes_none(stage: Stage) -> None:
    """The pool is one, however many hosts see it, and the volume stays in it."""
    name = f"common-{stage.namespace}"[:63]
    common = {"storageClasses": [{"name": name, "size": "600Gi", "shared": True}]}
    both = {"test/pair": stage.namespace}
    first, second = (stage.add_host(labels=both, simulation=common) for _ in range(2))
    data = {"name": "data", "size": "400Gi", "storageClass": name}
    body = virtual_machine("mover", stage.namespace, volumes=[data], nodeSelector=both)
    stage.api.create(body)
    here = stage.until_running("mover")["status"]["nodeName"]
    there = second if here == first else first
    stage.api.create(virtual_machine("beside", stage.namespace, volumes=[data], nodeSelector=both))
    lacking = f"lack storage of class {name} (409600 MiB asked, 204800 free at most)"
    assert lacking in refused(stage, "beside")
    notes = {"annotations": {"novacron.io/migrate-to": there}}
    stage.api.patch_machine(stage.namespace, "mover", {"metadata": notes})
    stage.until("mover", lambda obj: obj["status"]["nodeName"] == there)
    assert lacking in refused(stage, "beside")


def example(stage: Stage, name: str) -> list[Object]:
    """Return the machines of an example, for hosts of this test alone."""
    bodies: list[Object] = list(yaml.safe_load_all((EXAMPLES / name).read_text()))
    for body in bodies:
        body["metadata"]["namespace"] = stage.namespace
        body["spec"]["template"]["spec"]["nodeSelector"] = {"test/pair": stage.namespace}
    return bodies


def test_the_examples_of_classes_share_a_volume_and_take_a_kept_one(stage: Stage) -> None:
    """What is to be put into the second one is what the first one's status says."""
    (editor,) = example(stage, "25-storage-classes.yaml")
    stage.api.create(editor)
    assert "lacks" not in refused(stage, "editor")
    classes = {"storageClasses": [{"name": "fast-ssd"}, {"name": "nfs", "shared": True}]}
    both = {"test/pair": stage.namespace}
    for _ in range(2):
        stage.add_host(labels=both, simulation=classes)
    editor = stage.until_running("editor")
    ids = {each["name"]: each["id"] for each in editor["status"]["volumes"]}
    for body in example(stage, "26-kept-volumes.yaml"):
        (volume,) = body["spec"]["template"]["spec"]["volumes"]
        assert volume["existing"].rpartition("-")[0] == f"editor.{volume['name']}"
        volume["existing"] = ids[volume["name"]]
        stage.api.create(body)
    printer = stage.until_running("printer")
    assert [each["id"] for each in printer["status"]["volumes"]] == [ids["articles"]]
    stage.until("heir", lambda obj: condition(obj, "Created").get("reason") == "VolumeInUse")
    stage.api.delete_machine(stage.namespace, "editor")
    stage.until_gone("editor")
    heir = stage.until_running("heir")
    assert heir["status"]["nodeName"] == editor["status"]["nodeName"]
    (volume,) = heir["status"]["volumes"]
    assert (volume["id"], volume["size"]) == (ids["database"], "128Mi")
    assert volumes(stage.until_running("printer")) == {"articles": "Attached"}
