"""A VirtualMachine from its creation to its end, on simulated hosts and a real API server."""

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from api import Refused
from e2e.conftest import Stage
from machines import condition, virtual_machine
from novacron.core.machine import Power, Resources

Object = dict[str, Any]

TESTS = Path(__file__).parent.parent


def test_a_machine_runs_and_its_status_says_all_that_the_specification_lists(stage: Stage) -> None:
    """What a user reads first: phase, host, address, what it has and uses, and why."""
    host = stage.add_host()
    stage.api.create(virtual_machine("web", stage.namespace, cpu=4, memory="8Gi", on=host))
    obj = stage.until_running("web")
    status = obj["status"]
    assert status["phase"] == "Running"
    assert status["nodeName"] == host
    assert status["ipAddresses"][0].startswith("10.")
    assert status["vmID"].startswith("sim-")
    assert status["resources"]["cpu"] == {"used": "1", "available": "4"}
    assert status["resources"]["memory"] == {"used": "4Gi", "available": "8Gi"}
    assert status["resources"]["disk"] == {"used": "1Gi", "available": "10Gi"}
    for name in ("Ready", "LiveMigratable"):
        fields = condition(obj, name)
        assert {"status", "lastProbeTime", "lastTransitionTime", "reason", "message"} <= set(fields)
    assert condition(obj, "Ready")["reason"] == "VMReady"


def test_two_writes_are_enough(stage: Stage) -> None:
    """Writes are what an API server can give least of; the metric counts ours."""
    host = stage.add_host()
    before = _writes(stage)
    stage.api.create(virtual_machine("two-writes", stage.namespace, on=host))
    obj = stage.until_running("two-writes")
    assert obj["metadata"]["finalizers"] == ["novacron.io/machine"]
    assert _writes(stage) - before == 2


def test_a_machine_that_was_never_placed_is_deleted_at_once(stage: Stage) -> None:
    """Nothing was made for it, so nothing holds it."""
    stage.api.create(virtual_machine("unplaced", stage.namespace, on="nowhere"))
    stage.until("unplaced", lambda obj: bool(condition(obj, "Placed")))
    stage.api.delete_machine(stage.namespace, "unplaced")
    assert stage.api.machine(stage.namespace, "unplaced") is None


def test_a_machine_whose_record_was_taken_away_is_found_again(stage: Stage) -> None:
    """The hosts are asked before anything is made: nothing is doubled, nothing lost."""
    stage.add_host()
    stage.add_host()
    stage.api.create(virtual_machine("lost", stage.namespace))
    running = stage.until_running("lost")
    path = f"/apis/novacron.io/v1alpha1/namespaces/{stage.namespace}/virtualmachines/lost"
    nothing = {"metadata": {"annotations": None}}
    stage.api.call("PATCH", path, nothing, merge=True)
    stage.api.call("PATCH", f"{path}/status", {"status": None}, merge=True)
    again = stage.until_running("lost")
    assert again["status"]["nodeName"] == running["status"]["nodeName"]
    with stage.world() as world:
        assert len([m for m in world.machines() if m.name == "lost"]) == 1


def test_a_settled_machine_is_not_written_again(stage: Stage) -> None:
    """Every look at it finds the same, so nothing is written and no timestamp moves."""
    host = stage.add_host()
    stage.api.create(virtual_machine("calm", stage.namespace, on=host))
    version = stage.until_running("calm")["metadata"]["resourceVersion"]
    time.sleep(3)  # three inventories
    obj = stage.api.machine(stage.namespace, "calm")
    assert obj is not None
    assert obj["metadata"]["resourceVersion"] == version


def test_stop_and_start_follow_the_spec(stage: Stage) -> None:
    """running is the desired state."""
    host = stage.add_host()
    stage.api.create(virtual_machine("lamp", stage.namespace, on=host))
    vm_id = stage.until_running("lamp")["status"]["vmID"]
    stage.api.patch_machine(stage.namespace, "lamp", {"spec": {"running": False}})
    obj = stage.until("lamp", lambda obj: obj["status"]["phase"] == "Stopped")
    assert condition(obj, "Ready")["reason"] == "Stopped"
    stage.api.patch_machine(stage.namespace, "lamp", {"spec": {"running": True}})
    stage.until("lamp", lambda obj: obj["status"]["phase"] == "Running")
    assert stage.until_running("lamp")["status"]["vmID"] == vm_id


def test_a_changed_size_is_reserved_first_and_then_given(stage: Stage) -> None:
    """The placer grants, the machine's controller gives."""
    host = stage.add_host(cpu=8)
    stage.api.create(virtual_machine("grower", stage.namespace, cpu=2, on=host))
    stage.until_running("grower")
    _set_cpu(stage, "grower", 6)
    obj = stage.until("grower", lambda obj: obj["status"]["resources"]["cpu"]["available"] == "6")
    assert "reservation" not in obj["status"]
    with stage.world() as world:
        assert [m.resources.vcpus for m in world.machines() if m.name == "grower"] == [6]


def test_a_size_that_does_not_fit_is_refused_in_words_and_the_machine_runs_on(stage: Stage) -> None:
    """Growth beyond the host is answered by a condition, and granted when room appears."""
    host = stage.add_host(cpu=4)
    stage.api.create(virtual_machine("big", stage.namespace, cpu=2, on=host))
    stage.until_running("big")
    _set_cpu(stage, "big", 6)
    obj = stage.until("big", lambda obj: condition(obj, "Placed").get("status") == "False")
    assert condition(obj, "Placed")["reason"] == "HostFull"
    assert "lacks CPU (4 more asked, 2 free)" in condition(obj, "Placed")["message"]
    assert obj["status"]["phase"] == "Running"
    stage.api.patch_host(host, {"spec": {"overcommit": {"cpu": 2}}})
    stage.until("big", lambda obj: obj["status"]["resources"]["cpu"]["available"] == "6")


def test_deletion_removes_the_machine_before_the_object(stage: Stage) -> None:
    """The finalizer goes last."""
    host = stage.add_host(simulation={"delays": {"delete": "500ms"}})
    stage.api.create(virtual_machine("brief", stage.namespace, on=host))
    stage.until_running("brief")
    stage.api.delete_machine(stage.namespace, "brief")
    assert stage.api.machine(stage.namespace, "brief") is not None
    stage.until_gone("brief")
    with stage.world() as world:
        assert not [m for m in world.machines() if m.name == "brief"]


def test_what_changes_behind_our_back_is_repaired(stage: Stage) -> None:
    """Powered off, resized or destroyed at the hypervisor: the spec wins."""
    host = stage.add_host()
    stage.api.create(virtual_machine("stubborn", stage.namespace, cpu=2, on=host))
    uid = stage.until_running("stubborn")["metadata"]["uid"]
    time.sleep(1.5)  # one inventory, so that there is something to compare with
    for disturb, repaired in (
        (lambda w: w.power_off(uid), lambda m: m.power is Power.ON),
        (
            lambda w: w.resize(uid, Resources(1, 512, 10240)),
            lambda m: m.resources.vcpus == 2,
        ),
        (lambda w: w.destroy(uid), lambda m: m.power is Power.ON),
    ):
        with stage.world() as world:
            disturb(world)
            _eventually_one(world, uid, repaired)
        time.sleep(1.5)


def test_the_specification_s_own_manifest_is_placed_where_its_labels_are(stage: Stage) -> None:
    """Applied verbatim but for the namespace; it runs on a host with the labels it selects."""
    obj = yaml.safe_load((TESTS / "golden/spec-000-virtualmachine.yaml").read_text())
    obj["metadata"]["namespace"] = stage.namespace
    stage.add_host()
    stage.api.create(obj)
    waiting = stage.until("example-vm", lambda obj: bool(condition(obj, "Placed")))
    assert "node.novacron.io/gpu=true" in condition(waiting, "Placed")["message"]
    labels = {"node.novacron.io/type": "compute", "node.novacron.io/gpu": "true"}
    classes = {"storageClasses": [{"name": "fast-ssd"}]}
    stage.add_host(labels=labels, simulation=classes)
    missing = "1 lacks devices (needs 1 gpu nvidia tesla-t4, has none)"
    stage.until("example-vm", lambda obj: missing in condition(obj, "Placed")["message"])
    gpu = {"address": "0000:3b:00.0", "type": "gpu", "vendor": "nvidia", "model": "tesla-t4"}
    host = stage.add_host(labels=labels, simulation={"devices": [gpu], **classes})
    running = stage.until_running("example-vm")
    assert running["status"]["nodeName"] == host
    assert "10.0.1.10" in running["status"]["ipAddresses"]
    assert running["status"]["devices"] == [gpu]


def test_events_tell_a_user_what_happened(stage: Stage) -> None:
    """In kubectl describe, in words."""
    host = stage.add_host()
    stage.api.create(virtual_machine("told", stage.namespace, on=host))
    stage.until_running("told")
    assert stage.until_event("told", "Created")["message"] == f"created on host {host}"
    assert stage.until_event("told", "Started")["message"] == f"started on host {host}"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"memory": "256Mi"}, "must be at least 512Mi"),
        ({"cpu": 0}, "should be greater than or equal to 1"),
        ({"memory": "-1Gi"}, "memory"),
        ({"memory": "a lot"}, "memory"),
    ],
)
def test_bad_resources_are_refused_at_the_door(stage: Stage, change: Object, sentence: str) -> None:
    """By schema, rule or webhook, whichever is earliest; nothing is stored."""
    obj = virtual_machine("bad", stage.namespace)
    obj["spec"]["template"]["spec"]["resources"] |= change
    with pytest.raises(Refused, match=sentence):
        stage.api.create(obj)
    assert stage.api.machine(stage.namespace, "bad") is None


def _set_cpu(stage: Stage, name: str, cpu: int) -> None:
    patch = {"spec": {"template": {"spec": {"resources": {"cpu": cpu}}}}}
    stage.api.patch_machine(stage.namespace, name, patch)


def _writes(stage: Stage) -> int:
    """Count writes to machines; events are creations and hosts are quiet by now."""
    text = stage.operator.get("metrics", "/metrics")
    assert text is not None
    return sum(
        int(float(line.rsplit(" ", 1)[1]))
        for line in text.splitlines()
        if line.startswith("novacron_api_requests_total")
        and ('verb="update"' in line or 'verb="patch"' in line)
    )


def _eventually_one(world: Any, uid: str, repaired: Any) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        found = [m for m in world.machines() if m.uid == uid]
        if len(found) == 1 and repaired(found[0]):
            return
        time.sleep(0.1)
    raise AssertionError(f"not repaired: {found}")
