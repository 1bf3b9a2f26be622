"""Machines that move between nodes of a real KubeVirt, and those whose node dies."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.kubevirt.machines import MachineStage, condition, staged
from kubevirt_bed import HOLD, fresh_namespace, new_bed, stop_bed
from operators import install

Object = dict[str, Any]
EXAMPLES = Path(__file__).parents[3] / "examples"
SHARED = [{"name": "root", "accessMode": "ReadWriteMany"}]
TO, CANCEL, RECORD = "novacron.io/migrate-to", "novacron.io/migrate-cancel", "novacron.io/move"
MIGRATIONS = "virtualmachineinstancemigrations"


def result(obj: Object) -> str | None:
    """Return how the last move of a Machine ended, once nothing asks any more."""
    notes = obj["metadata"].get("annotations") or {}
    if TO in notes or RECORD in notes:
        return None
    return (obj["status"].get("migration") or {}).get("result")


@pytest.mark.full
def test_a_machine_moves_once_to_the_node_that_was_asked_for(stage: MachineStage) -> None:
    stage.apply_file(EXAMPLES / "56-machine-day-two.yaml")
    before = stage.until_running("steady-vm")
    nodes = {f"kubevirt-{number}" for number in (1, 2, 3)}
    target = min(nodes - {before["status"]["nodeName"]})
    stage.bed.annotate("machines", "steady-vm", TO, target)
    after = stage.until("steady-vm", lambda obj: result(obj) == "Succeeded")
    moved = after["status"]["migration"]
    assert moved["sourceNode"] == before["status"]["nodeName"]
    assert moved["targetNode"] == target
    stage.until("steady-vm", lambda obj: obj["status"]["nodeName"] == target)
    assert len(stage.bed.items(MIGRATIONS)) == 1
    nics = [each["status"]["networkInterfaces"][0]["macAddress"] for each in (before, after)]
    assert nics[0] == nics[1]
    stage.bed.delete("machines", "steady-vm")
    stage.until_gone("steady-vm")
    stage.bed.wait("its migration stayed", lambda: stage.bed.items(MIGRATIONS) == [])


def test_a_machine_that_cannot_move_is_refused_with_the_reason(stage: MachineStage) -> None:
    stage.declare("stuck", disks=[{"name": "root", "accessMode": "ReadWriteOnce"}])
    stage.until_running("stuck")
    stage.until_told("stuck", "LiveMigratable", "False", "Immovable")
    stage.bed.annotate("machines", "stuck", TO, "any")
    after = stage.until("stuck", lambda obj: result(obj) == "Refused")
    assert "stuck-root is not shared" in after["status"]["migration"]["message"]
    assert stage.bed.items(MIGRATIONS) == []


@pytest.mark.full
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


@pytest.mark.full
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


@pytest.fixture
def lonely(tmp_path: Path, kubernetes_binaries: Path) -> Iterator[MachineStage]:
    """A stage in a cluster of its own: what happens to its nodes is nobody else's trouble."""
    assert kubernetes_binaries
    bed = new_bed(tmp_path / "cluster")
    install(bed.plane)
    with fresh_namespace(bed) as inside, staged(inside, tmp_path) as there:
        yield there
    stop_bed(bed)


@pytest.mark.full
def test_a_machine_on_a_dead_node_is_unknown_until_the_node_is_fenced_and_starts_elsewhere(
    lonely: MachineStage,
) -> None:
    """Not before: it may still run and write to its disks."""
    lonely.declare("orphan", disks=SHARED)
    before = lonely.until_running("orphan")
    node, guest = before["status"]["nodeName"], lonely.bed.instance("orphan")["metadata"]["uid"]
    lonely.bed.annotate("nodes", node, HOLD, "dead", "")
    obj = lonely.until_told("orphan", "Ready", "Unknown", "NodeNotReady")
    fence = f"{node} node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
    assert f"kubectl taint node {fence}" in condition(obj, "Ready")["message"]
    assert lonely.bed.instance("orphan")["metadata"]["uid"] == guest
    lonely.bed.plane.kubectl("taint", "node", *fence.split())
    lonely.until("orphan", lambda obj: obj["status"].get("nodeName") not in (None, node))
    after = lonely.until_running("orphan")
    nics = [each["status"]["networkInterfaces"][0]["macAddress"] for each in (before, after)]
    assert nics[0] == nics[1]
