"""Machines that move between nodes of a real KubeVirt, and those whose node dies."""

import json
from typing import Any

import pytest

from e2e.kubevirt.machines import MachineStage, condition
from kubevirt_bed import HOLD

Object = dict[str, Any]
SHARED = [{"name": "root", "accessMode": "ReadWriteMany"}]
TO, CANCEL, RECORD = "novacron.io/migrate-to", "novacron.io/migrate-cancel", "novacron.io/move"
MIGRATIONS = "virtualmachineinstancemigrations"


def result(obj: Object) -> str | None:
    """Return how the last move of a Machine ended, once nothing asks any more."""
    notes = obj["metadata"].get("annotations") or {}
    if TO in notes or RECORD in notes:
        return None
    return (obj["status"].get("migration") or {}).get("result")


def test_a_machine_moves_once_to_the_node_that_was_asked_for(stage: MachineStage) -> None:
    stage.declare("mover", disks=SHARED)
    before = stage.until_running("mover")
    nodes = {f"kubevirt-{number}" for number in (1, 2, 3)}
    target = min(nodes - {before["status"]["nodeName"]})
    stage.bed.annotate("machines", "mover", TO, target)
    after = stage.until("mover", lambda obj: result(obj) == "Succeeded")
    moved = after["status"]["migration"]
    assert moved["sourceNode"] == before["status"]["nodeName"]
    assert moved["targetNode"] == target
    stage.until("mover", lambda obj: obj["status"]["nodeName"] == target)
    assert len(stage.bed.items(MIGRATIONS)) == 1
    nics = [each["status"]["networkInterfaces"][0]["macAddress"] for each in (before, after)]
    assert nics[0] == nics[1]
    stage.bed.delete("machines", "mover")
    stage.until_gone("mover")
    stage.bed.wait("its migration stayed", lambda: stage.bed.items(MIGRATIONS) == [])


def test_a_machine_that_cannot_move_is_refused_with_the_reason(stage: MachineStage) -> None:
    stage.declare("stuck", disks=[{"name": "root", "accessMode": "ReadWriteOnce"}])
    stage.until_running("stuck")
    stage.until_told("stuck", "LiveMigratable", "False", "Immovable")
    stage.bed.annotate("machines", "stuck", TO, "any")
    after = stage.until("stuck", lambda obj: result(obj) == "Refused")
    assert "stuck-root is not shared" in after["status"]["migration"]["message"]
    assert stage.bed.items(MIGRATIONS) == []


def test_a_record_that_a_dead_operator_left_is_gone_on_with_and_made_once(
    stage: MachineStage,
) -> None:
    """The order's id is in the name, so that whoever comes next finds what was asked for."""
    stage.declare("heir", disks=SHARED)
    uid = stage.until_running("heir")["metadata"]["uid"]
    stage.operator.stop()
    order = {"uid": uid, "id": "order1", "source": "", "target": "", "live": True}
    stage.bed.annotate("machines", "heir", RECORD, json.dumps(order))
    stage.operator.start()
    after = stage.until("heir", lambda obj: result(obj) == "Succeeded")
    assert after["status"]["migration"]["id"] == "order1"
    assert [each["metadata"]["name"] for each in stage.bed.items(MIGRATIONS)] == ["heir-order1"]


def test_a_move_that_is_cancelled_leaves_the_machine_where_it_is(stage: MachineStage) -> None:
    stage.declare("stayer", disks=SHARED)
    before = stage.until_running("stayer")["status"]["nodeName"]
    # No such node, so that it waits for room.
    stage.bed.annotate("machines", "stayer", TO, "nowhere")
    stage.bed.wait("nothing was ordered", lambda: stage.bed.items(MIGRATIONS))
    stage.bed.annotate("machines", "stayer", CANCEL, "true")
    after = stage.until("stayer", lambda obj: result(obj) == "Cancelled")
    assert after["status"]["nodeName"] == before
    assert CANCEL not in (after["metadata"].get("annotations") or {})
    stage.until_running("stayer")


@pytest.mark.full
def test_a_machine_on_a_dead_node_is_unknown_with_the_remedy_until_the_node_is_back(
    stage: MachineStage,
) -> None:
    """Nobody starts it elsewhere before somebody made sure that the node is off."""
    stage.declare("orphan", disks=SHARED)
    node = stage.until_running("orphan")["status"]["nodeName"]
    stage.bed.annotate("nodes", node, HOLD, "true", "")
    try:
        obj = stage.until_told("orphan", "Ready", "Unknown", "NodeNotReady")
        assert (
            f"kubectl taint node {node} node.kubernetes.io/out-of-service"
            in (condition(obj, "Ready")["message"])
        )
    finally:
        stage.bed.annotate("nodes", node, HOLD, None, "")
    stage.until_running("orphan")
