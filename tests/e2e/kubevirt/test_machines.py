"""Machines of the Viti Stack from their declaration to their end, on a real KubeVirt."""

from pathlib import Path

import pytest

from e2e.kubevirt.machines import MachineStage, condition

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("50-machine-basic.yaml", "basic-vm"),
        ("51-machine-overrides.yaml", "custom-vm"),
        ("52-machine-networks.yaml", "networked-vm"),
        ("53-machine-cloud-init.yaml", "cloud-init-vm"),
    ],
)
def test_the_examples_of_the_specification_run(stage: MachineStage, file: str, name: str) -> None:
    stage.apply_file(EXAMPLES / file)
    obj = stage.until_running(name)
    status = obj["status"]
    assert (status["vmName"], status["vmiName"]) == (name, name)
    assert status["ipAddresses"]
    assert status["nodeName"].startswith("kubevirt-")
    reasons = {
        "VirtualMachineReady": "VMCreated",
        "StorageReady": "PVCBound",
        "NetworkReady": "NetworkConfigured",
    }
    assert {kind: condition(obj, kind)["reason"] for kind in reasons} == reasons
    for plural in ("virtualmachines", "virtualmachineinstances", "persistentvolumeclaims"):
        assert stage.bed.items(plural, f"vitistack.io/machine={name}"), plural


def test_overrides_and_disks_join_the_template_as_the_specification_says(
    stage: MachineStage,
) -> None:
    stage.apply_file(EXAMPLES / "51-machine-overrides.yaml")
    stage.until_running("custom-vm")
    vm = stage.bed.get("virtualmachines", "custom-vm")
    assert vm is not None
    domain = vm["spec"]["template"]["spec"]["domain"]
    assert domain["cpu"] == {"sockets": 4, "cores": 1, "threads": 1}
    assert domain["memory"]["guest"] == "8Gi"
    claims = {
        each["metadata"]["name"]: (
            each["spec"]["resources"]["requests"]["storage"],
            each["spec"]["storageClassName"],
        )
        for each in stage.bed.items("persistentvolumeclaims")
    }
    assert claims == {
        "custom-vm-root": ("20Gi", "standard"),
        "custom-vm-data": ("100Gi", "fast-ssd"),
    }


def test_a_machine_that_is_deleted_leaves_nothing_behind(stage: MachineStage) -> None:
    stage.declare("gone", cloudInit={"userData": "#cloud-config\n"})
    stage.until_running("gone")
    stage.bed.delete("machines", "gone")
    stage.until_gone("gone")
    for plural in ("virtualmachines", "virtualmachineinstances", "persistentvolumeclaims"):
        assert stage.bed.items(plural) == []
    stage.bed.wait(
        "its Secret is not gone", lambda: stage.bed.get("secrets", "gone-cloud-init") is None
    )


def test_power_follows_the_running_field(stage: MachineStage) -> None:
    stage.declare("switch", running=False)
    stage.until("switch", lambda obj: obj.get("status", {}).get("phase") == "Stopped")
    assert stage.bed.get("virtualmachineinstances", "switch") is None
    stage.change("switch", running=True)
    stage.until_running("switch")
    stage.change("switch", running=False)
    stage.until("switch", lambda obj: obj["status"]["phase"] == "Stopped")


def test_a_machine_that_can_move_grows_while_it_runs(stage: MachineStage) -> None:
    disks = [{"name": "root", "accessMode": "ReadWriteMany"}]
    stage.declare("grower", disks=disks)
    before = stage.until_running("grower")
    first = stage.bed.get("virtualmachineinstances", "grower")
    assert first is not None
    stage.change("grower", resources={"cpu": {"cores": 2}, "memory": {"size": "4Gi"}})
    grown = stage.until(
        "grower", lambda obj: obj["status"].get("cpus") == 2 and obj["status"]["memory"] == 2**32
    )
    after = stage.bed.get("virtualmachineinstances", "grower")
    assert after is not None
    assert after["metadata"]["uid"] == first["metadata"]["uid"]
    nics = [obj["status"]["networkInterfaces"][0]["macAddress"] for obj in (before, grown)]
    assert nics[0] == nics[1]


def test_a_change_that_a_running_guest_cannot_take_is_said_and_then_made_by_a_restart(
    stage: MachineStage,
) -> None:
    stage.declare("restarter")
    stage.until_running("restarter")
    first = stage.bed.get("virtualmachineinstances", "restarter")
    assert first is not None
    stage.change("restarter", resources={"memory": {"size": "1Gi"}})
    stage.until_told("restarter", "RestartRequired", "True", "PendingChanges")
    stage.until("restarter", lambda obj: obj["status"].get("memory") == 2**30)
    after = stage.bed.get("virtualmachineinstances", "restarter")
    assert after is not None
    assert after["metadata"]["uid"] != first["metadata"]["uid"]
