"""A node that is drained: machines that may move do, and those that may not are stopped."""

from typing import Any

import pytest

from api import Refused
from e2e.kubevirt.machines import MachineStage, condition

pytestmark = pytest.mark.full

Object = dict[str, Any]
SHARED = [{"name": "root", "accessMode": "ReadWriteMany"}]
MIGRATIONS = "virtualmachineinstancemigrations"
STAYS = {"allowLiveMigration": False}


def evict(stage: MachineStage, name: str) -> Object:
    """Ask for the machine's pod to leave its node, as kubectl drain does."""
    (pod,) = stage.bed.items("pods", f"vitistack.io/machine={name}")
    metadata = {"name": pod["metadata"]["name"], "namespace": stage.bed.namespace}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    path = stage.bed.path("pods", metadata["name"])
    stage.bed.api.call("POST", f"{path}/eviction", body)
    return pod


def strategy(stage: MachineStage, name: str) -> str:
    """Return what KubeVirt is told to do about a machine whose node is drained."""
    vm = stage.bed.get("virtualmachines", name)
    assert vm is not None
    return str(vm["spec"]["template"]["spec"]["evictionStrategy"])


def test_a_machine_that_may_move_is_moved_and_goes_on(stage: MachineStage) -> None:
    """KubeVirt refuses the eviction until it has."""
    stage.declare("nomad", disks=SHARED)
    before = stage.until_running("nomad")["status"]["nodeName"]
    guest = stage.bed.instance("nomad")["metadata"]["uid"]
    with pytest.raises(Refused, match="evict"):
        evict(stage, "nomad")
    stage.until("nomad", lambda obj: obj["status"].get("nodeName") not in (None, before))
    assert stage.bed.instance("nomad")["metadata"]["uid"] == guest


def test_a_machine_that_may_not_move_is_stopped_and_started_elsewhere(
    stage: MachineStage,
) -> None:
    stage.declare("settler", disks=SHARED, migrationPolicy=STAYS)
    stage.until_running("settler")
    guest = stage.bed.instance("settler")["metadata"]["uid"]
    evict(stage, "settler")
    stage.bed.wait(
        "it was not started again",
        lambda: stage.bed.instance("settler")["metadata"]["uid"] != guest,
    )
    assert stage.bed.items(MIGRATIONS) == []
    stage.until_running("settler")


def test_a_change_of_mind_restarts_nobody_and_is_said_until_the_next_start(
    stage: MachineStage,
) -> None:
    stage.declare("fickle", disks=SHARED)
    stage.until_running("fickle")
    guest = stage.bed.instance("fickle")["metadata"]["uid"]
    assert strategy(stage, "fickle") == "LiveMigrateIfPossible"
    stage.change("fickle", migrationPolicy=STAYS)
    obj = stage.until_told("fickle", "ChangePending", "True", "NeedsRestart")
    assert "none is made for it alone" in condition(obj, "ChangePending")["message"]
    assert strategy(stage, "fickle") == "None"
    stage.until_running("fickle")
    assert stage.bed.instance("fickle")["metadata"]["uid"] == guest
    assert condition(obj, "RestartRequired") == {}
    stage.bed.ask("fickle", "restart")
    stage.until("fickle", lambda found: condition(found, "ChangePending") == {})
    stage.until_running("fickle")
