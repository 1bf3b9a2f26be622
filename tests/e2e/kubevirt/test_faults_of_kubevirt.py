"""KubeVirt or the cluster itself is missing or not well: each on a cluster that may break."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from api import Api
from control_plane import ALL, discard, throw_away
from e2e.kubevirt.machines import MachineStage, condition, staged
from kubevirt_bed import KubeVirtBed, fresh_namespace, new_bed, stop_bed
from local_cluster import processes_under
from novacron.localcluster.kubevirt.addition import KubeVirt
from novacron.localcluster.kubevirt.binaries import locate as locate_kubevirt
from novacron.localcluster.kubevirt.flags import FLAGS
from novacron.workplace.home import Home
from novacron.workplace.progress import Silent
from operators import install

pytestmark = [pytest.mark.full, pytest.mark.timeout(400)]

Object = dict[str, Any]

API, CONTROLLER = "virt-api", "virt-controller"


@pytest.fixture(scope="module")
def breakable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeVirtBed]:
    """A cluster of these tests' own, with our kinds."""
    directory: Path = tmp_path_factory.mktemp("breakable")
    bed = new_bed(directory)
    try:
        install(bed.plane)
        yield bed
    finally:
        stop_bed(bed)
    assert processes_under(directory) == []


@pytest.fixture
def stage(breakable: KubeVirtBed, tmp_path: Path) -> Iterator[MachineStage]:
    """A namespace and an operator in a cluster that is well, and is made well again."""
    with fresh_namespace(breakable) as bed, staged(bed, tmp_path) as there:
        try:
            yield there
        finally:
            bed.plane.start()
            bed.kubevirt.start()


def stop(stage: MachineStage, *names: str) -> None:
    """Stop programs of the cluster."""
    for name in names:
        assert stage.bed.plane.processes.stop(name)


def told_of(stage: MachineStage, name: str, word: str) -> Object:
    """Wait until a Machine says that KubeVirt fails, and names what to look at."""

    def told(obj: Object) -> bool:
        claim = condition(obj, "Ready")
        return claim.get("reason") == "KubeVirtApiError" and word in claim["message"]

    said = stage.until(name, told)
    assert condition(said, "Ready")["status"] != "True"
    assert said["status"]["message"] == condition(said, "Ready")["message"]
    return said


def instance_uid(stage: MachineStage, name: str) -> str:
    """Return which instance of a Machine runs."""
    uid: str = stage.bed.instance(name)["metadata"]["uid"]
    return uid


def test_a_cluster_without_kubevirt_is_used_once_it_has_one(
    tmp_path: Path, kubernetes_binaries: Path
) -> None:
    plane = throw_away(tmp_path / "cluster", kubernetes_binaries, ALL, FLAGS)
    kubevirt = KubeVirt(plane, locate_kubevirt(Home.default().cache, Silent()))
    try:
        plane.start()
        install(plane)
        with (
            closing(Api(plane.kubeconfig)) as api,
            fresh_namespace(KubeVirtBed(kubevirt, api)) as bed,
            staged(bed, tmp_path) as stage,
        ):
            stage.declare("early")
            said = told_of(stage, "early", "install KubeVirt")
            assert said["status"]["phase"] == "Pending"
            kubevirt.start()
            stage.until_running("early")
            assert "Traceback" not in stage.operator.log
    finally:
        kubevirt.stop()
        discard(plane)


def test_webhooks_that_do_not_answer_are_said_and_awaited(stage: MachineStage) -> None:
    stage.declare("before")
    stage.until_running("before")
    running = instance_uid(stage, "before")
    stop(stage, API)
    stage.declare("during")
    said = told_of(stage, "during", "virt-api")
    assert said["status"]["phase"] in ("Pending", "Creating")
    old = stage.machine("before")
    assert old is not None
    assert old["status"]["phase"] == "Running", "what runs is none of virt-api's business"
    stage.bed.kubevirt.start()
    stage.until_running("during")
    assert instance_uid(stage, "before") == running


def test_a_machine_is_deleted_once_webhooks_answer_again(stage: MachineStage) -> None:
    stage.declare("leaver")
    stage.until_running("leaver")
    stop(stage, API)
    stage.bed.delete("machines", "leaver")
    time.sleep(2)
    stage.bed.kubevirt.start()
    stage.until_gone("leaver")
    for plural in ("virtualmachines", "virtualmachineinstances", "persistentvolumeclaims"):
        assert stage.bed.items(plural) == []


def test_a_controller_that_does_not_act_is_said(stage: MachineStage) -> None:
    """The VirtualMachine is taken, and then nothing happens at all."""
    stop(stage, CONTROLLER)
    stage.declare("ignored")
    said = told_of(stage, "ignored", "virt-controller")
    assert said["status"]["phase"] == "Creating"
    machine = condition(said, "VirtualMachineReady")
    assert (machine["status"], machine["reason"]) == ("False", "VMFailed")
    stage.bed.kubevirt.start()
    running = stage.until_running("ignored")
    assert condition(running, "VirtualMachineReady")["reason"] == "VMCreated"


def test_an_upgrade_of_kubevirt_loses_no_order(stage: MachineStage) -> None:
    for name in ("stays", "stops", "leaves"):
        stage.declare(name)
    for name in ("stays", "stops", "leaves"):
        stage.until_running(name)
    running = instance_uid(stage, "stays")
    stop(stage, API, CONTROLLER)
    stage.change("stops", running=False)
    stage.bed.delete("machines", "leaves")
    stage.declare("comes")
    told_of(stage, "comes", "KubeVirt")
    stage.bed.kubevirt.start()
    stage.until_running("comes")
    stage.until("stops", lambda obj: obj["status"]["phase"] == "Stopped")
    stage.until_gone("leaves")
    stage.until_running("stays")
    assert instance_uid(stage, "stays") == running


def test_a_machine_that_is_deleted_while_the_api_server_goes_leaves_nothing(
    stage: MachineStage,
) -> None:
    stage.declare("orphan", cloudInit={"userData": "#cloud-config\n"})
    stage.declare("stays")
    stage.until_running("orphan")
    stage.until_running("stays")
    running = instance_uid(stage, "stays")
    stage.bed.delete("machines", "orphan")
    stop(stage, "kube-apiserver")
    time.sleep(3)
    stage.bed.plane.start()
    stage.bed.kubevirt.start()
    stage.until_gone("orphan")
    for plural in ("virtualmachines", "virtualmachineinstances", "persistentvolumeclaims"):
        left = [each["metadata"]["name"] for each in stage.bed.items(plural)]
        assert all(name.startswith("stays") for name in left), left
    stage.until_running("stays")
    assert instance_uid(stage, "stays") == running
    assert stage.operator.ready()


def test_a_machine_type_is_refused_until_the_cluster_allows_it(stage: MachineStage) -> None:
    stage.declare("antique", domain={"machine": {"type": "pc-i440fx"}})
    said = stage.until_told("antique", "Ready", "False", "MachineTypeNotAllowed")
    assert said["status"]["phase"] == "Failed"
    assert said["status"]["failureReason"] == "MachineTypeNotAllowed"
    assert "q35*, pc-q35*" in said["status"]["failureMessage"]
    assert "emulatedMachines" in said["status"]["failureMessage"]
    allowed = {"amd64": {"emulatedMachines": ["q35*", "pc-q35*", "pc-i440fx*"]}}
    patch = {"spec": {"configuration": {"architectureConfiguration": allowed}}}
    path = "/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt"
    stage.bed.api.call("PATCH", path, patch, merge=True)
    stage.until("antique", lambda obj: obj["status"].get("vmName") == "antique")
    vm = stage.bed.get("virtualmachines", "antique")
    assert vm is not None
    assert vm["spec"]["template"]["spec"]["domain"]["machine"]["type"] == "pc-i440fx"
