"""Images and install media of Machines: gated, followed and ejected; the test plays CDI."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api import Api, Refused
from control_plane import ALL, throw_away
from e2e.kubevirt.machines import MachineStage, condition, staged
from kubevirt_bed import (
    GROUPS,
    PATIENCE,
    KubeVirtBed,
    fresh_namespace,
    stop_bed,
)
from novacron.core.quantity import mib, parse_quantity
from novacron.localcluster.kubevirt.addition import KubeVirt
from novacron.localcluster.kubevirt.binaries import locate as locate_kubevirt
from novacron.workplace.home import Home
from novacron.workplace.progress import Silent
from operators import install

Object = dict[str, Any]

GROUPS |= {
    "customresourcedefinitions": "/apis/apiextensions.k8s.io/v1",
    "datavolumes": "/apis/cdi.kubevirt.io/v1beta1",
}
# What virt-controller looks at once CDI is there.
KINDS = {
    "datavolumes": ("DataVolume", "Namespaced"),
    "datasources": ("DataSource", "Namespaced"),
    "cdis": ("CDI", "Cluster"),
    "cdiconfigs": ("CDIConfig", "Cluster"),
    "storageprofiles": ("StorageProfile", "Cluster"),
}
GIB = 2**30
IMAGE = {"source": "https://images.example.com/debian.qcow2"}
ISO = {"source": "https://images.example.com/install.iso", "size": "1Gi"}


def definition(plural: str) -> Object:
    """A definition that CDI brings along elsewhere."""
    kind, scope = KINDS[plural]
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1beta1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}} if plural != "datavolumes" else {},
        "schema": {"openAPIV3Schema": schema},
    }
    names = {"plural": plural, "singular": kind.lower(), "kind": kind}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.cdi.kubevirt.io"},
        "spec": {
            "group": "cdi.kubevirt.io",
            "scope": scope,
            "names": names,
            "versions": [version],
        },
    }


@pytest.fixture(scope="module")
def cdi_bed(
    tmp_path_factory: pytest.TempPathFactory, kubernetes_binaries: Path
) -> Iterator[KubeVirtBed]:
    """A cluster of our own that knew CDI's kinds before KubeVirt started, which looks only then."""
    plane = throw_away(tmp_path_factory.mktemp("cdi"), kubernetes_binaries, ALL, PATIENCE)
    kubevirt = KubeVirt(plane, locate_kubevirt(Home.default().cache, Silent()))
    plane.start()
    bed = KubeVirtBed(kubevirt, Api(plane.kubeconfig))
    for plural in KINDS:
        bed.create("customresourcedefinitions", definition(plural), "")
    kubevirt.start()
    install(plane)
    yield bed
    stop_bed(bed)


@pytest.fixture
def cdi(cdi_bed: KubeVirtBed, tmp_path: Path) -> Iterator[MachineStage]:
    """A stage in that cluster."""
    with fresh_namespace(cdi_bed) as bed, staged(bed, tmp_path) as there:
        yield there


def say(stage: MachineStage, name: str, **status: Any) -> None:
    """Write into a DataVolume what CDI would; once it is done, its claim is there."""
    bed = stage.bed
    found = bed.wait(f"no import {name}", lambda: bed.get("datavolumes", name))
    if status["phase"] == "Succeeded" and bed.get("persistentvolumeclaims", name) is None:
        asked = found["spec"]["storage"]
        owner = {"apiVersion": found["apiVersion"], "kind": "DataVolume", "name": name}
        owner |= {"uid": found["metadata"]["uid"], "controller": True}
        kept = {part: found["metadata"][part] for part in ("labels", "annotations")}
        metadata = {"name": name, **kept, "ownerReferences": [owner]}
        # There is a file system around the image, for which CDI claims a little more.
        size = parse_quantity(asked["resources"]["requests"]["storage"]) * 106 / 100
        room = {"resources": {"requests": {"storage": str(int(size))}}}
        spec = {"accessModes": ["ReadWriteMany"], **asked, **room}
        bed.create("persistentvolumeclaims", {"metadata": metadata, "spec": spec})
    bed.patch("datavolumes", name, {"status": status})


def test_without_cdi_a_machine_with_an_image_says_what_to_install(stage: MachineStage) -> None:
    stage.declare("lacking", image=IMAGE)
    obj = stage.until_told("lacking", "Ready", "False", "ImporterMissing")
    assert "install CDI" in condition(obj, "Ready")["message"]
    assert obj["status"]["phase"] == "Pending"
    assert stage.bed.items("virtualmachines") == []


@pytest.mark.full
def test_a_machine_starts_once_its_image_is_there_and_tells_how_far_that_is(
    cdi: MachineStage,
) -> None:
    cdi.declare("web", image=IMAGE)
    say(cdi, "web-root", phase="ImportInProgress", progress="41.7%")
    obj = cdi.until("web", lambda obj: (obj["status"].get("image") or {}).get("progress") == 41)
    assert obj["status"]["image"]["state"] == "Importing"
    assert condition(obj, "Ready")["reason"] == "ImageImporting"
    assert cdi.bed.items("virtualmachines") == []
    say(cdi, "web-root", phase="Succeeded", progress="100.0%")
    obj = cdi.until_running("web")
    assert obj["status"]["image"]["state"] == "Ready"
    found = cdi.bed.get("datavolumes", "web-root")
    assert found is not None
    assert found["spec"]["source"] == {"http": {"url": IMAGE["source"]}}
    # CDI may be set to delete what it is done with, and then we would import it once more.
    notes = found["metadata"]["annotations"]
    assert notes["cdi.kubevirt.io/storage.deleteAfterCompletion"] == "false"
    cdi.bed.delete("machines", "web")
    cdi.until_gone("web")
    assert cdi.bed.items("datavolumes") == []


@pytest.mark.full
def test_the_room_that_cdi_adds_around_an_image_is_kept_and_nobodys_wish(cdi: MachineStage) -> None:
    """A disk that grows does so by what is asked for, and one that is to shrink is refused."""

    def claimed() -> int:
        claim = cdi.bed.get("persistentvolumeclaims", "roomy-root")
        assert claim is not None
        return mib(claim["spec"]["resources"]["requests"]["storage"])

    cdi.declare("roomy", image=IMAGE)
    say(cdi, "roomy-root", phase="Succeeded")
    [disk] = cdi.until_running("roomy")["status"]["disks"]
    assert disk["size"] == 20 * GIB
    assert disk["message"].startswith("its claim is for 21")
    before = claimed()
    cdi.change("roomy", disks=[{"name": "root", "size": "30Gi"}])
    cdi.until("roomy", lambda obj: obj["status"]["disks"][0]["size"] == 30 * GIB)
    assert claimed() == before + 10 * 1024
    with pytest.raises(Refused, match="disks can grow but never shrink"):
        cdi.change("roomy", disks=[{"name": "root", "size": "25Gi"}])


@pytest.mark.full
def test_an_import_that_fails_is_told_with_the_reason(cdi: MachineStage) -> None:
    cdi.declare("broken", image=IMAGE)
    why = [{"type": "Running", "status": "False", "reason": "Error", "message": "404 Not Found"}]
    say(cdi, "broken-root", phase="Failed", conditions=why)
    obj = cdi.until_told("broken", "Ready", "False", "ImageFailed")
    assert "404 Not Found" in condition(obj, "Ready")["message"]
    say(cdi, "broken-root", phase="Succeeded")
    cdi.until_running("broken")


@pytest.mark.full
def test_an_install_medium_is_ejected_and_deleted_once_the_guest_is_installed(
    cdi: MachineStage,
) -> None:
    cdi.declare("fresh", iso=ISO)
    say(cdi, "fresh-iso", phase="Succeeded")
    cdi.until_running("fresh")
    vm = cdi.bed.get("virtualmachines", "fresh")
    assert vm is not None
    disks = {d["name"]: d for d in vm["spec"]["template"]["spec"]["domain"]["devices"]["disks"]}
    assert disks["iso"]["cdrom"] == {"bus": "sata"}
    assert disks["root"]["bootOrder"] < disks["iso"]["bootOrder"]
    cdi.bed.annotate("machines", "fresh", "vitistack.io/os-installed", "true")
    cdi.until_told("fresh", "RestartRequired", "True", "PendingChanges")
    cdi.bed.wait("the medium stayed", lambda: cdi.bed.items("datavolumes") == [])
    gone = lambda: cdi.bed.get("persistentvolumeclaims", "fresh-iso") is None  # noqa: E731
    cdi.bed.wait("its claim stayed", gone)
    obj = cdi.until_running("fresh")
    assert obj["status"]["iso"]["state"] == "Ejected"
    assert "iso" not in str(cdi.bed.instance("fresh")["spec"]["volumes"])
