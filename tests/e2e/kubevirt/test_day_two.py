"""Changes of Machines that run, on a real KubeVirt: said before they are made, and then made."""

from typing import Any

import pytest

from e2e.kubevirt.machines import MachineStage, condition
from kubevirt_bed import HOLD

Object = dict[str, Any]
SHARED = {"name": "root", "accessMode": "ReadWriteMany"}


def disk(obj: Object, name: str) -> Object:
    """Return what a Machine says of a disk."""
    found: list[Object] = obj["status"].get("disks") or []
    return next((each for each in found if each["name"] == name), {})


def instance_uid(stage: MachineStage, name: str) -> str:
    """Return which guest runs now: another one after a restart."""
    return str(stage.bed.instance(name)["metadata"]["uid"])


def test_disks_are_plugged_into_a_running_machine_and_pulled_out_again(
    stage: MachineStage,
) -> None:
    stage.declare("plug", disks=[SHARED])
    stage.until_running("plug")
    guest = instance_uid(stage, "plug")
    stage.change("plug", disks=[SHARED, {"name": "data", "size": "5Gi"}])
    stage.until("plug", lambda obj: disk(obj, "data").get("state") == "Attached")
    volumes = {v["name"]: v for v in stage.bed.instance("plug")["status"]["volumeStatus"]}
    assert volumes["data"]["phase"] == "Ready"
    obj = stage.until_running("plug")
    assert condition(obj, "RestartRequired") == condition(obj, "ChangePending") == {}
    stage.change("plug", disks=[SHARED])
    stage.until("plug", lambda obj: disk(obj, "data").get("state") == "Detached")
    stage.bed.wait(
        "the guest did not let go of it",
        lambda: "data" not in str(stage.bed.instance("plug")["spec"]["volumes"]),
    )
    stage.until_running("plug")
    assert instance_uid(stage, "plug") == guest
    assert stage.bed.get("persistentvolumeclaims", "plug-data") is not None


def test_the_growth_of_a_disk_is_followed_until_the_guest_sees_it(stage: MachineStage) -> None:
    stage.declare("grow", disks=[SHARED])
    stage.until_running("grow")
    guest = instance_uid(stage, "grow")
    stage.bed.annotate("persistentvolumeclaims", "grow-root", HOLD, "true")
    stage.change("grow", disks=[SHARED | {"size": "40Gi"}])
    obj = stage.until("grow", lambda obj: disk(obj, "root").get("state") == "Growing")
    assert disk(obj, "root")["size"] == 20 * 2**30
    assert disk(obj, "root")["wantedSize"] == 40 * 2**30
    said = condition(obj, "ChangePending")
    assert (said["reason"], "disk root of 20Gi to 40Gi" in said["message"]) == ("Live", True)
    stage.bed.annotate("persistentvolumeclaims", "grow-root", HOLD, None)
    obj = stage.until("grow", lambda obj: disk(obj, "root").get("state") == "Attached")
    assert disk(obj, "root")["size"] == 40 * 2**30
    assert "growpart" in disk(obj, "root")["message"]
    assert condition(obj, "ChangePending") == {}
    assert instance_uid(stage, "grow") == guest


@pytest.mark.full
def test_a_change_that_needs_a_restart_waits_where_none_is_allowed(stage: MachineStage) -> None:
    stage.declare("calm", updateStrategy={"rollingUpdate": {"maxUnavailable": 0}})
    stage.until_running("calm")
    guest = instance_uid(stage, "calm")
    stage.change("calm", resources={"memory": {"size": "1Gi"}})
    obj = stage.until_told("calm", "ChangePending", "True", "NeedsRestart")
    said = condition(obj, "ChangePending")["message"]
    assert "2Gi to 1Gi of memory by a restart, for it was started with 2Gi" in said
    assert "allows no restart" in said
    stage.until_told("calm", "RestartRequired", "True", "PendingChanges")
    stage.until_running("calm")
    assert instance_uid(stage, "calm") == guest
    stage.bed.ask("calm", "restart")
    stage.until("calm", lambda obj: obj["status"].get("memory") == 2**30)
    stage.until("calm", lambda obj: condition(obj, "ChangePending") == {})


@pytest.mark.full
def test_growth_that_takes_a_move_is_said_before_it_is_made(stage: MachineStage) -> None:
    stage.declare("mover", disks=[SHARED])
    stage.until_running("mover")
    stage.change("mover", resources={"cpu": {"cores": 2}})
    obj = stage.until_told("mover", "ChangePending", "True", "LiveByMigration")
    assert "1 to 2 CPUs by moving it" in condition(obj, "ChangePending")["message"]


def test_a_chipset_that_the_cluster_does_not_allow_is_refused_with_the_remedy(
    stage: MachineStage,
) -> None:
    stage.declare("old", domain={"machine": {"type": "pc-i440fx"}})
    obj = stage.until_told("old", "Ready", "False", "MachineTypeNotAllowed")
    assert obj["status"]["phase"] == "Failed"
    assert "emulatedMachines" in condition(obj, "Ready")["message"]
    assert stage.bed.items("virtualmachines") == []


@pytest.mark.full
def test_interfaces_come_and_go_while_a_machine_runs(stage: MachineStage) -> None:
    """virt-controller looks for what to migrate only every few seconds."""
    stage.network("lan", bridge="br1")
    nics = [{"name": "eth0"}, {"name": "eth1", "networkName": "lan"}]
    stage.declare("nics", disks=[SHARED], networks=nics[:1])
    stage.until_running("nics")
    guest = instance_uid(stage, "nics")
    stage.change("nics", networks=nics)

    def names() -> list[str]:
        told = stage.bed.instance("nics")["status"].get("interfaces") or []
        return sorted(each["name"] for each in told)

    stage.bed.wait("it did not come", lambda: names() == ["eth0", "eth1"])
    stage.until("nics", lambda obj: condition(obj, "ChangePending") == {})
    stage.change("nics", networks=nics[:1])
    stage.bed.wait("it did not go", lambda: names() == ["eth0"])
    stage.until("nics", lambda obj: condition(obj, "ChangePending") == {})
    stage.until_running("nics")
    assert instance_uid(stage, "nics") == guest
