"""The operator has the rights to Machines that it uses, and no others."""

import json
from typing import Any

from chart.audit import Right, rights_in
from e2e.kubevirt.machines import MachineStage
from kubevirt_bed import audit_of
from novacron.app.rights import beyond_machines, for_machines

# Asked for when somebody else was faster, or an answer was lost, which a test cannot order.
RARE = {
    Right("get", "", "persistentvolumeclaims"),
    Right("get", "kubevirt.io", "virtualmachines"),
    # An instance that outlives its VirtualMachine; KubeVirt takes it along.
    Right("delete", "kubevirt.io", "virtualmachineinstances"),
    Right("get", "vitistack.io", "machines"),
}
# For a NovaCron VirtualMachine on a Host of driver kubevirt.
FOR_HOSTS = {Right("list", "", "nodes")}
# tests/e2e/kubevirt/test_day_two.py plugs disks into running machines.
FOR_PLUGGING = {
    Right("update", "subresources.kubevirt.io", f"virtualmachines/{what}")
    for what in ("stop", "addvolume", "removevolume")
}
# tests/e2e/kubevirt/test_moves.py cancels a move.
FOR_CANCELLING = {Right("delete", "kubevirt.io", "virtualmachineinstancemigrations")}
# tests/e2e/kubevirt/test_snapshots.py has a storage that takes snapshots.
FOR_SNAPSHOTS = {
    Right(verb, "snapshot.kubevirt.io", f"virtualmachine{what}s")
    for verb in ("create", "delete")
    for what in ("snapshot", "restore")
}
# tests/e2e/kubevirt/test_imports.py has CDI's kinds.
FOR_IMPORTS = {
    Right(verb, "cdi.kubevirt.io", "datavolumes")
    for verb in ("get", "list", "watch", "create", "delete")
} | {Right("get", "cdi.kubevirt.io", "storageprofiles")}
ELSEWHERE = FOR_HOSTS | FOR_PLUGGING | FOR_CANCELLING | FOR_SNAPSHOTS | FOR_IMPORTS


def test_every_right_to_machines_is_used_and_nothing_is_forbidden(stage: MachineStage) -> None:
    """The API server itself tells what the operator asks for."""
    live_a_life(stage)
    audit, here = audit_of(stage.bed.plane.directory), ("", stage.bed.namespace)
    mine = [each for each in audit.entries() if each["objectRef"].get("namespace", "") in here]
    assert not [each["requestURI"] for each in mine if each["responseStatus"]["code"] == 403]
    used = {right._replace(name="") for right in audit.used()}
    given = set(rights_in([*for_machines(["viti"]), *beyond_machines(["viti"])]))
    assert given - used <= RARE | ELSEWHERE
    told = {right for right in used if right.group != "novacron.io"}
    beyond = {"events", "namespaces", "hosts", "leases"}
    assert {right for right in told - given if right.resource not in beyond} == set()


def live_a_life(stage: MachineStage) -> None:
    """Have the operator do all that it does about Machines."""
    stage.network("lan", vlan=7)
    secret = {"metadata": {"name": "seed"}, "stringData": {"userdata": "#cloud-config\n"}}
    stage.bed.create("secrets", secret)
    network = {"metadata": {"name": "seed"}, "data": {"networkdata": "version: 2\n"}}
    stage.bed.create("configmaps", network)
    told = {
        "userData": "#cloud-config\n",
        "secretRef": {"name": "seed", "key": "userdata"},
        "networkDataConfigMapRef": {"name": "seed", "key": "networkdata"},
    }
    networks = [{"name": "eth0", "networkName": "lan"}]
    shared = {"accessMode": "ReadWriteMany"}
    disks = [{"name": "root", **shared}, {"name": "more", "size": "1Gi", **shared}]
    stage.declare("life", cloudInit=told, networks=networks, disks=disks)
    stage.until_running("life")
    stage.bed.patch("networkconfigurations", "lan", {"spec": {"vlan": 8}})
    stage.change(
        "life",
        cloudInit={"userData": "#cloud-config\npackages: [vim]\n"},
        disks=[disks[0] | {"size": "30Gi"}, disks[1] | {"size": "2Gi"}],
    )
    stage.until("life", lambda obj: obj["status"]["observedGeneration"] == 2)
    stage.until_running("life")
    stage.bed.annotate("machines", "life", "novacron.io/migrate-to", "any")
    stage.until("life", has_moved)
    stage.change("life", running=False)
    stage.until("life", lambda obj: obj["status"]["phase"] == "Stopped")
    stage.bed.delete("machines", "life")
    stage.until_gone("life")


def has_moved(obj: dict[str, Any]) -> bool:
    """Say whether a move is over."""
    move = obj["status"].get("migration") or {}
    assert move.get("result") in (None, "Succeeded"), move
    return "result" in move


def metrics(stage: MachineStage) -> str:
    """Return what Prometheus would read."""
    return stage.operator.get("metrics", "/metrics") or ""


def test_metrics_and_log_lines_are_those_of_the_specification(stage: MachineStage) -> None:
    stage.declare("counted")
    stage.until_running("counted")
    for sample in (
        'kubevirt_operator_machines_total{phase="Running",template="small"} 1.0',
        'kubevirt_operator_virtual_machines_total{status="Running"} 1.0',
        'kubevirt_operator_storage_provisioning_duration_seconds_count{storage_class="standard"}',
        'kubevirt_operator_reconciliation_duration_seconds_count{controller="Machine"}',
    ):
        stage.bed.wait(sample, lambda sample=sample: sample in metrics(stage))
    lines = [json.loads(line) for line in stage.operator.log.splitlines()]
    about = next(line for line in lines if line.get("machine") == "counted")
    assert about.keys() >= {"timestamp", "level", "message", "phase"}
    assert about["controller"] == "Machine"
    assert about["namespace"] == stage.bed.namespace
