"""Snapshots of Machines by KubeVirt's own API; the storage's answers are written by the test."""

from collections.abc import Iterator
from typing import Any

import pytest

from e2e.kubevirt.machines import MachineStage, condition
from kubevirt_bed import GROUPS, KubeVirtBed

Object = dict[str, Any]

STORAGE = "/apis/snapshot.storage.k8s.io/v1"
GROUPS |= {
    "customresourcedefinitions": "/apis/apiextensions.k8s.io/v1",
    "volumesnapshots": STORAGE,
    "volumesnapshotclasses": STORAGE,
    "volumesnapshotcontents": STORAGE,
    "virtualmachinerestores": "/apis/snapshot.kubevirt.io/v1beta1",
}
KINDS = {
    "volumesnapshots": ("VolumeSnapshot", "Namespaced"),
    "volumesnapshotclasses": ("VolumeSnapshotClass", "Cluster"),
    "volumesnapshotcontents": ("VolumeSnapshotContent", "Cluster"),
}


def definition(plural: str) -> Object:
    """A definition of a kind that CSI's snapshot controller brings along elsewhere."""
    kind, scope = KINDS[plural]
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    }
    names = {"plural": plural, "singular": kind.lower(), "kind": kind}
    approved = "https://github.com/kubernetes-csi/external-snapshotter/pull/814"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.snapshot.storage.k8s.io",
            "annotations": {"api-approved.kubernetes.io": approved},
        },
        "spec": {
            "group": "snapshot.storage.k8s.io",
            "scope": scope,
            "names": names,
            "versions": [version],
        },
    }


@pytest.fixture
def snapshot_storage(kubevirt: KubeVirtBed) -> Iterator[KubeVirtBed]:
    """A cluster whose storage is said to take snapshots."""
    for plural in KINDS:
        kubevirt.create("customresourcedefinitions", definition(plural), "")
    for plural in KINDS:
        kubevirt.wait(f"{plural} are not served", lambda p=plural: _served(kubevirt, p))
    kubevirt.create(
        "volumesnapshotclasses",
        {
            "apiVersion": "snapshot.storage.k8s.io/v1",
            "kind": "VolumeSnapshotClass",
            "metadata": {"name": "stand-in"},
            "driver": "stand-in.novacron.io",
            "deletionPolicy": "Delete",
        },
        "",
    )
    yield kubevirt
    for plural in KINDS:
        name = f"{plural}.snapshot.storage.k8s.io"
        kubevirt.delete("customresourcedefinitions", name, "")


def _served(bed: KubeVirtBed, plural: str) -> bool:
    name = f"{plural}.snapshot.storage.k8s.io"
    found = bed.get("customresourcedefinitions", name, "") or {}
    conditions = (found.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def answer(bed: KubeVirtBed) -> None:
    """Say of every snapshot of a volume what CSI's snapshot controller would."""
    for each in bed.items("volumesnapshots"):
        status = {
            "readyToUse": True,
            "creationTime": "2026-01-01T00:00:00Z",
            "restoreSize": "20Gi",
            "boundVolumeSnapshotContentName": f"content-{each['metadata']['name']}",
        }
        path = bed.path("volumesnapshots", each["metadata"]["name"])
        bed.api.call("PATCH", f"{path}/status", {"status": status}, merge=True)


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
    snapshot_storage: KubeVirtBed, stage: MachineStage
) -> None:
    bed = snapshot_storage
    stage.declare("keeper")
    stage.until_running("keeper")
    first = bed.instance("keeper")["metadata"]["uid"]
    stage.change("keeper", snapshots=[{"name": "before"}])
    bed.wait("no snapshot was asked for", lambda: bed.items("volumesnapshots"))
    answer(bed)
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
