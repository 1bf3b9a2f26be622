"""Snapshots of Machines by KubeVirt's own API; the storage's answers are written by the test."""

import pytest

from e2e.kubevirt.machines import MachineStage, condition
from snapshot_storage import SNAPSHOT_CLASS, answer_snapshots, have_snapshot_storage


def test_a_disk_that_cannot_be_snapshot_is_named_before_anything_is_asked_for(
    stage: MachineStage,
) -> None:
    stage.declare("bare", snapshots=[{"name": "first"}])
    stage.until_running("bare")
    obj = stage.until_told("bare", "Snapshotted", "False", "VolumeCannotBeSnapshot")
    assert "disk root (" in condition(obj, "Snapshotted")["message"]
    assert stage.bed.items("virtualmachinesnapshots") == []


@pytest.mark.full
def test_a_machine_goes_back_to_a_snapshot_stopped_restored_and_started_in_one(
    stage: MachineStage,
) -> None:
    bed = stage.bed
    have_snapshot_storage(bed)
    stage.declare("keeper", disks=[{"name": "root", "storageClass": SNAPSHOT_CLASS}])
    stage.until_running("keeper")
    first = bed.instance("keeper")["metadata"]["uid"]
    stage.change("keeper", snapshots=[{"name": "before"}])
    bed.wait("no snapshot was asked for", lambda: bed.items("volumesnapshots"))
    answer_snapshots(bed)
    obj = stage.until("keeper", lambda obj: obj["status"].get("snapshots"))
    assert [each["name"] for each in obj["status"]["snapshots"]] == ["before"]
    stage.change("keeper", restore={"snapshot": "before", "request": "monday"})
    stage.until_told("keeper", "Restored", "Unknown", "Restoring")
    obj = stage.until("keeper", lambda obj: obj["status"].get("restore"))
    assert obj["status"]["restore"]["succeeded"], obj["status"]["restore"]
    stage.until_running("keeper")
    assert bed.instance("keeper")["metadata"]["uid"] != first
    assert len(bed.items("virtualmachinerestores")) == 1
    claim = bed.get("persistentvolumeclaims", "keeper-root")
    assert claim is not None
    assert claim["metadata"]["labels"]["vitistack.io/machine"] == "keeper"
    stage.change("keeper", snapshots=[{"name": "before", "discard": True}])
    bed.wait("it stayed", lambda: bed.items("virtualmachinesnapshots") == [])
    bed.delete("machines", "keeper")
    stage.until_gone("keeper")
    bed.wait("a restore stayed", lambda: bed.items("virtualmachinerestores") == [])
