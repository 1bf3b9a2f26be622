"""A real API server takes the definitions of the Viti Stack family and shows its objects well."""

import json
from pathlib import Path

import pytest
import yaml

from declared import Object
from declared_viti import machine, machine_class, network
from gitops import differences
from novacron.families.viti.kinds import RESOURCES, Machine
from novacron.localcluster.errors import LocalClusterError

NAMES = [versions[0].__kind__.full_name for versions in RESOURCES]
ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("5[0-7]-machine-*.yaml"))
MACHINE = "machine.vitistack.io/m"


@pytest.mark.parametrize("name", NAMES)
def test_definitions_are_established_and_structural(plane, name) -> None:
    """The server serves them, under the short names we chose, and has no complaint."""
    conditions = json.loads(plane.kubectl("get", "crd", name, "-o", "json"))["status"]["conditions"]
    found = {condition["type"]: condition["status"] for condition in conditions}
    assert found["Established"] == "True"
    assert found["NamesAccepted"] == "True"
    assert found.get("NonStructuralSchema", "False") == "False"


def test_defaults_are_few_and_never_in_lists(create) -> None:
    """GitOps compares lists item by item: what the server adds there is a difference for ever."""
    disks, networks = [{"name": "data", "size": "1Gi"}], [{"name": "eth0", "networkName": "lan"}]
    spec = create(machine(disks=disks, networks=networks))["spec"]
    assert spec == {
        "template": "medium",
        "disks": disks,
        "networks": networks,
        "running": True,
        "updateStrategy": {"type": "RollingUpdate"},
        "migrationPolicy": {"allowLiveMigration": True},
    }


def test_columns_of_machines(plane, namespace, create) -> None:
    """What kubectl get machines shows at a glance."""
    create(machine())
    status = {
        "phase": "Running",
        "nodeName": "node-7",
        "ipAddresses": ["10.1.2.3"],
        "vmName": "m",
        "vmiName": "m",
        "lastUpdated": "2026-01-01T00:00:00Z",
        "resourceVersion": "17",
        "size": {"cpus": 2, "memory": "4Gi", "disk": "40Gi"},
        "state": "Running",
        "conditions": [{"type": "Ready", "status": "True", "reason": "VMReady"}],
    }
    patch = ("--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
    plane.kubectl("patch", "-n", namespace, MACHINE, *patch)
    header, row = plane.kubectl("get", "machines", "-n", namespace).splitlines()
    assert header.split() == ["NAME", "PHASE", "TEMPLATE", "CLASS", "IP", "NODE", "AGE"]
    assert row.split()[:5] == ["m", "Running", "medium", "10.1.2.3", "node-7"]
    wide = plane.kubectl("get", "m", "-n", namespace, "-o", "wide").splitlines()[1]
    assert wide.split()[-5:] == ["2", "4Gi", "40Gi", "Running", "VMReady"]
    kept = json.loads(plane.kubectl("get", "-n", namespace, MACHINE, "-o", "json"))
    assert kept["status"] == status
    read = Machine.model_validate(kept)
    assert read.status is not None
    assert read.status.node_name == "node-7"


def test_columns_of_networks_and_classes(plane, namespace, create) -> None:
    """Networks show their VLAN, classes their size; classes are in no namespace."""
    create(network(bridge="br0"))
    create(machine_class(namespace))
    shown = plane.kubectl("get", "networkconfigurations", "-n", namespace).splitlines()
    assert shown[1].split()[:3] == ["lan", "7", "br0"]
    shown = plane.kubectl("get", "mclass", namespace).splitlines()
    assert shown[1].split()[:5] == [namespace, "32", "128Gi", "false", "true"]


GROWING = {"disks": [{"name": "root", "size": "30Gi"}, {"name": "data", "size": "1Gi"}]}
TRANSITIONS: dict[str, tuple[Object, Object, str]] = {
    "disk": (GROWING, {"disks": [{"name": "data", "size": "1023Mi"}]}, "grow but never shrink"),
    "disk in upstream's unit": (
        {"disks": [{"name": "data", "size": "2Gi"}]},
        {"disks": [{"name": "data", "sizeGB": 1}]},
        "disks can grow but never shrink",
    ),
    "template": ({"template": "large"}, {"template": "small"}, "the root disk would shrink"),
    "root below its template": (
        {"template": "medium"},
        {"disks": [{"name": "root", "size": "39Gi"}]},
        "the root disk would shrink",
    ),
    "root left to a smaller template": (
        {"template": "small", "disks": [{"name": "root", "size": "21Gi"}]},
        {"disks": []},
        "the root disk would shrink",
    ),
    "storage class": (
        {"disks": [{"name": "data", "size": "1Gi", "storageClass": "a"}]},
        {"disks": [{"name": "data", "size": "1Gi", "storageClass": "b"}]},
        "storageClass of a disk cannot change",
    ),
    "volume mode": (
        {"disks": [{"name": "data", "size": "1Gi"}]},
        {"disks": [{"name": "data", "size": "1Gi", "volumeMode": "Block"}]},
        "volumeMode of a disk cannot change",
    ),
    "image": (
        {"image": {"source": "https://h/a"}},
        {"image": {"source": "https://h/b"}},
        "image.source cannot change",
    ),
    "image afterwards": ({}, {"image": {"source": "https://h/b"}}, "image.source cannot change"),
    "provider": ({}, {"provider": "proxmox"}, "provider cannot change"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after", "sentence"), TRANSITIONS.values(), ids=TRANSITIONS)
def test_changes_that_no_machine_can_follow_are_refused(
    plane, namespace, create, before, after, sentence
) -> None:
    """The operator never has to explain later what the server can refuse now."""
    create(machine(**before))
    patch = ("--type=merge", "-p", json.dumps({"spec": after}))
    with pytest.raises(LocalClusterError, match=sentence):
        plane.kubectl("patch", "-n", namespace, MACHINE, *patch)


def test_disks_grow_and_come_and_go_in_either_word(plane, namespace, create) -> None:
    """Only shrinking is refused; the same size in another word is no change."""
    create(machine(template="small"))
    for change in (
        {"template": "medium"},
        {"disks": [{"name": "root", "sizeGB": 40}, {"name": "data", "sizeGB": 1}]},
        {"disks": [{"name": "root", "size": "40960Mi"}, {"name": "data", "size": "1Gi"}]},
        {"disks": [{"name": "root", "size": "80Gi"}, {"name": "other", "size": "1Mi"}]},
        {"template": "large", "disks": None},
        {"template": "custom", "provider": "kubevirt"},
    ):
        patch = ("--type=merge", "-p", json.dumps({"spec": change}))
        plane.kubectl("patch", "-n", namespace, MACHINE, *patch)


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_the_manifests_of_the_specification_apply_verbatim(plane, namespace, file) -> None:
    """Twice, strictly checked, and nothing of what was written is lost."""
    text = file.read_text(encoding="utf-8").replace("namespace: default", f"namespace: {namespace}")
    for _ in range(2):
        plane.kubectl("apply", "-n", namespace, "--validate=strict", "-f", "-", input=text)
    for wanted in yaml.safe_load_all(text):
        name = f"{wanted['kind'].lower()}.vitistack.io/{wanted['metadata']['name']}"
        kept = json.loads(plane.kubectl("get", "-n", namespace, name, "-o", "json"))
        assert list(differences(wanted["spec"], kept["spec"])) == []


def test_there_are_examples() -> None:
    """The four of the specification, and those that they need."""
    assert len(EXAMPLES) >= 4
