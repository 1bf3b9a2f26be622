"""Storage that is said to take snapshots, in a KubeVirt cluster whose volumes are a stand-in.

CSI's snapshot controller is not there: whoever tests gives its answers. What is made here stays in
the cluster, beside classes that take none, so that tests of either do not see each other.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from api import Api, Refused
from kubevirt_bed import GROUPS, KubeVirtBed
from novacron.localcluster.kubevirt.names import PROVISIONER

__all__ = ["SNAPSHOT_CLASS", "answer_snapshots", "answering_snapshots", "have_snapshot_storage"]

Object = dict[str, Any]

# The StorageClass whose volumes can be snapshot.
SNAPSHOT_CLASS = "snapshotting"
DRIVER = f"snapshots.{PROVISIONER}"
GONE = 404
ANSWER_SECONDS = 0.3
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
CLASSES = {
    "storageclasses": {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": SNAPSHOT_CLASS},
        "provisioner": DRIVER,
        "allowVolumeExpansion": True,
    },
    "volumesnapshotclasses": {
        "apiVersion": "snapshot.storage.k8s.io/v1",
        "kind": "VolumeSnapshotClass",
        "metadata": {"name": SNAPSHOT_CLASS},
        "driver": DRIVER,
        "deletionPolicy": "Delete",
    },
}


def have_snapshot_storage(bed: KubeVirtBed) -> None:
    """Have a class of storage whose volumes can be snapshot."""
    for plural in KINDS:
        _have(bed, "customresourcedefinitions", _definition(plural))
    for plural in KINDS:
        bed.wait(f"{plural} are not served", lambda p=plural: _served(bed, p))
    for plural, body in CLASSES.items():
        _have(bed, plural, body)


@contextmanager
def answering_snapshots(bed: KubeVirtBed) -> Iterator[None]:
    """Answer for all namespaces as long as this lasts, as the snapshot controller would."""
    ended = threading.Event()
    api = Api(bed.kubeconfig)
    everywhere = KubeVirtBed(bed.kubevirt, api, "")

    def answer() -> None:
        while not ended.wait(ANSWER_SECONDS):
            answer_snapshots(everywhere)

    thread = threading.Thread(target=answer, name="snapshot-controller")
    thread.start()
    try:
        yield
        assert thread.is_alive(), "nobody answered any more"
    finally:
        ended.set()
        thread.join()
        api.close()


def answer_snapshots(bed: KubeVirtBed) -> None:
    """Say of every snapshot of a volume what CSI's snapshot controller would."""
    for each in bed.items("volumesnapshots"):
        if (each.get("status") or {}).get("readyToUse"):
            continue
        status = {
            "readyToUse": True,
            "creationTime": "2026-01-01T00:00:00Z",
            "restoreSize": "20Gi",
            "boundVolumeSnapshotContentName": f"content-{each['metadata']['name']}",
        }
        name, namespace = each["metadata"]["name"], each["metadata"]["namespace"]
        path = bed.path("volumesnapshots", name, namespace)
        try:
            bed.api.call("PATCH", f"{path}/status", {"status": status}, merge=True)
        except Refused as refused:
            if refused.code != GONE:  # as a machine's snapshots do, with the machine
                raise


def _have(bed: KubeVirtBed, plural: str, body: Object) -> None:
    try:
        bed.create(plural, body, "")
    except Refused as refused:
        if refused.code != 409:
            raise


def _definition(plural: str) -> Object:
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


def _served(bed: KubeVirtBed, plural: str) -> bool:
    name = f"{plural}.snapshot.storage.k8s.io"
    found = bed.get("customresourcedefinitions", name, "") or {}
    conditions = (found.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)
