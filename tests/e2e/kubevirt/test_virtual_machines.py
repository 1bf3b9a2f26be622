"""A VirtualMachine of our own kind that is placed on a KubeVirt cluster."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.kubevirt.machines import MachineStage, condition, staged
from kubevirt_bed import KubeVirtBed

pytestmark = pytest.mark.full

Object = dict[str, Any]
EXAMPLE = Path(__file__).parents[3] / "examples/kubevirt/host-and-vm.yaml"
HOST = "kubevirt"
OURS = "/apis/novacron.io/v1alpha1"
FLAGS = ("--no-leader-elect", "--families=novacron,viti")


@pytest.fixture
def stage(importing: KubeVirtBed, tmp_path: Path) -> Iterator[MachineStage]:
    """An operator that serves both families, with the Host of the example: the cluster it is in."""
    with staged(importing, tmp_path, flags=FLAGS) as there:
        importing.api.call("POST", f"{OURS}/hosts", declared("Host"))
        yield there
        importing.api.call("DELETE", f"{OURS}/hosts/{HOST}")
        importing.wait("the Host stays", lambda: is_gone(importing))


def is_gone(bed: KubeVirtBed) -> bool:
    """Say whether there are no Hosts."""
    left: list[Object] = bed.api.call("GET", f"{OURS}/hosts")["items"]
    return not left


def declared(kind: str) -> Object:
    """Return an object of the example, for a namespace of the test's own."""
    objects: list[Object] = list(yaml.safe_load_all(EXAMPLE.read_text()))
    found = next(each for each in objects if each["kind"] == kind)
    found["metadata"].pop("namespace", None)
    return found


def path(stage: MachineStage, name: str) -> str:
    """Return where a VirtualMachine of ours is; KubeVirt has a kind of that name too."""
    return f"{OURS}/namespaces/{stage.bed.namespace}/virtualmachines/{name}"


def until(stage: MachineStage, name: str, **said: str) -> Object:
    """Wait until the status of a VirtualMachine says this."""

    def look() -> Object | None:
        found = stage.bed.api.call("GET", path(stage, name))
        status = found.get("status") or {}
        return found if all(status.get(key) == value for key, value in said.items()) else None

    try:
        there: Object = stage.bed.wait(name, look)
    except AssertionError as late:
        found = stage.bed.api.call("GET", path(stage, name))
        raise AssertionError(f"{found.get('status')}; {stage.operator.log[-3000:]}") from late
    return there


def test_a_virtual_machine_lives_on_kubevirt_as_on_any_other_host(stage: MachineStage) -> None:
    """Made, stopped, grown, started and removed; what it leaves there is nothing."""
    bed = stage.bed
    bed.api.call("POST", path(stage, "web").rpartition("/")[0], declared("VirtualMachine"))
    obj = until(stage, "web", phase="Running")
    assert condition(obj, "Ready")["status"] == "True"
    assert obj["status"]["nodeName"] == HOST
    uid = obj["metadata"]["uid"]
    vm = bed.get("virtualmachines", "web")
    assert vm is not None
    assert vm["metadata"]["labels"]["novacron.io/machine-uid"] == uid
    assert vm["spec"]["template"]["spec"]["domain"]["memory"]["guest"] == "2Gi"
    assert bed.instance("web")["status"]["phase"] == "Running"
    change(stage, "web", running=False)
    until(stage, "web", phase="Stopped")
    bed.wait("it runs on", lambda: bed.get("virtualmachineinstances", "web") is None)
    change(stage, "web", running=True, template={"spec": {"resources": {"memory": "4Gi"}}})
    until(stage, "web", phase="Running")
    assert bed.instance("web")["spec"]["domain"]["memory"]["guest"] == "4Gi"
    bed.api.call("DELETE", path(stage, "web"))
    bed.wait("its VirtualMachine stays", lambda: bed.get("virtualmachines", "web") is None)
    for plural in ("virtualmachineinstances", "persistentvolumeclaims", "datavolumes"):
        bed.wait(f"{plural} are left", lambda kind=plural: bed.items(kind) == [])


def test_a_host_that_is_a_cluster_says_what_it_has(stage: MachineStage) -> None:
    where = f"{OURS}/hosts/{HOST}"

    def ready() -> Object | None:
        found = stage.bed.api.call("GET", where)
        return found if condition(found, "Ready").get("status") == "True" else None

    found = stage.bed.wait("the host does not answer", ready)
    assert found["status"]["capacity"]["cpu"] > 0
    assert found["status"]["versions"].keys() == {"KubeVirt"}
    assert "Snapshots" in found["status"]["capabilities"]


def change(stage: MachineStage, name: str, **spec: Any) -> None:
    """Change a VirtualMachine."""
    stage.bed.api.call("PATCH", path(stage, name), {"spec": spec}, merge=True)


def test_a_machine_that_may_travel_only_encrypted_waits_for_a_cluster_that_encrypts(
    stage: MachineStage,
) -> None:
    """KubeVirt does unless it is told not to, and then sends memory in the clear on any drain."""
    body = declared("VirtualMachine")
    body["spec"]["migrationPolicy"] = {"encrypted": True}
    encrypt(stage, yes=False)
    try:
        stage.bed.api.call("POST", path(stage, "web").rpartition("/")[0], body)
        said = until(stage, "web", phase="Failed")
        assert condition(said, "Ready")["reason"] == "MovesNotEncrypted"
        assert "disableTLS" in condition(said, "Ready")["message"]
        assert stage.bed.get("virtualmachines", "web") is None
    finally:
        encrypt(stage, yes=True)
    until(stage, "web", phase="Running")
    stage.bed.api.call("DELETE", path(stage, "web"))
    stage.bed.wait("it stays", lambda: stage.bed.get("virtualmachines", "web") is None)


def encrypt(stage: MachineStage, *, yes: bool) -> None:
    """Have the cluster encrypt what it moves, or not."""
    migrations = {"disableTLS": None if yes else True}
    patch = {"spec": {"configuration": {"migrations": migrations}}}
    where = "/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt"
    stage.bed.api.call("PATCH", where, patch, merge=True)
