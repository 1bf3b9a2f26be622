"""A real API server takes our definitions and does with their objects what users expect."""

import json
from pathlib import Path

import pytest
import yaml

from declared import host, machine, network, vm
from novacron.families.novacron.kinds import RESOURCES, VirtualMachine

SPECIFIED = Path(__file__).parents[1] / "golden" / "spec-000-virtualmachine.yaml"
NAMES = [versions[0].__kind__.full_name for versions in RESOURCES]


@pytest.mark.parametrize("name", NAMES)
def test_definitions_are_established_and_structural(plane, name) -> None:
    """The server serves them and has no complaint about their schemas."""
    conditions = json.loads(plane.kubectl("get", "crd", name, "-o", "json"))["status"]["conditions"]
    found = {condition["type"]: condition["status"] for condition in conditions}
    assert found["Established"] == "True"
    assert found.get("NonStructuralSchema", "False") == "False"


def test_the_manifest_of_the_specification_applies_verbatim(plane, namespace) -> None:
    """Every field of it is known, its status included, nulls and all."""
    text = SPECIFIED.read_text(encoding="utf-8").replace(
        "namespace: default", f"namespace: {namespace}"
    )
    plane.kubectl("apply", "--validate=strict", "-f", "-", input=text)
    plane.kubectl("apply", "--validate=strict", "-f", "-", input=text)
    status = {"status": yaml.safe_load(text)["status"]}
    patch = ("--subresource=status", "--type=merge", "-p", json.dumps(status, default=str))
    plane.kubectl("patch", "-n", namespace, "vm.novacron.io/example-vm", *patch)
    kept = json.loads(
        plane.kubectl("get", "-n", namespace, "vm.novacron.io/example-vm", "-o", "json")
    )
    wanted = yaml.safe_load(text)
    assert kept["spec"]["template"] == wanted["spec"]["template"]
    assert kept["status"]["resources"] == wanted["status"]["resources"]
    assert kept["status"]["migration"] == {"targetNode": "", "progress": 0}
    machine_read = VirtualMachine.model_validate(kept)
    assert machine_read.status is not None
    assert machine_read.status.node_name == "node-01"


def test_defaults_are_filled_in_by_the_server(create) -> None:
    """They appear without any webhook, so that they hold even while the operator is away."""
    spec = create(network())["spec"]
    assert spec["running"] is True
    assert spec["migrationPolicy"] == {
        "allowLiveMigration": True,
        "compression": True,
        "encrypted": False,
    }
    assert spec["updateStrategy"] == {"type": "RollingUpdate"}
    template = spec["template"]["spec"]
    assert template["resources"] == {"cpu": 1, "memory": "512Mi", "disk": "10Gi"}
    assert template["networks"] == [{"name": "net"}]


def test_a_migration_policy_written_in_part_is_completed(create) -> None:
    """Defaults reach into objects that are there."""
    spec = create(machine(migrationPolicy={"encrypted": True}))["spec"]
    assert spec["migrationPolicy"] == {
        "allowLiveMigration": True,
        "compression": True,
        "encrypted": True,
    }


def test_columns_of_machines(plane, namespace, create) -> None:
    """What kubectl get vm shows at a glance, and what -o wide adds."""
    create(machine())
    status = {
        "phase": "Running",
        "nodeName": "node-7",
        "ipAddresses": ["10.1.2.3"],
        "vmID": "sim-1",
        "conditions": [{"type": "Ready", "status": "True", "reason": "VMReady"}],
    }
    patch = ("--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
    plane.kubectl("patch", "-n", namespace, "vms.novacron.io/vm", *patch)
    header, row = plane.kubectl("get", "vm.novacron.io", "-n", namespace).splitlines()
    assert header.split() == ["NAME", "PHASE", "NODE", "IP", "AGE"]
    assert row.split()[:4] == ["vm", "Running", "node-7", "10.1.2.3"]
    header, row = plane.kubectl("get", "vm.novacron.io", "-n", namespace, "-o", "wide").splitlines()
    assert header.split()[5:] == ["CPU", "MEMORY", "IMAGE", "REASON", "VM", "ID"]
    assert row.split()[5:] == ["1", "512Mi", "builtin://tiny", "VMReady", "sim-1"]


def test_columns_of_hosts(plane, namespace, create) -> None:
    """Hosts are cluster-scoped and found by their full and their short name."""
    create(host(namespace, unschedulable=True))
    amounts = {"cpu": 8, "memory": "16Gi", "disk": "1Ti"}
    status = {"capacity": amounts, "allocatable": amounts, "machines": 3, "conditions": [
        {"type": "Ready", "status": "True", "reason": "Reached", "observedGeneration": 1}
    ]}  # fmt: skip
    patch = ("--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
    plane.kubectl("patch", f"hosts.novacron.io/{namespace}", *patch)
    header, row = plane.kubectl("get", f"nvhost/{namespace}").splitlines()
    assert header.split() == [
        "NAME", "DRIVER", "READY", "CPU", "MEMORY", "MACHINES", "CORDONED", "AGE",
    ]  # fmt: skip
    assert row.split()[1:7] == ["simulation", "True", "8", "16Gi", "3", "true"]
    plane.kubectl("delete", f"nvhost/{namespace}")  # the server is for other tests too


def test_the_schema_explains_itself(plane) -> None:
    """kubectl explain shows the words written beside the types."""
    said = plane.kubectl("explain", "vm.spec.running", "--api-version=novacron.io/v1alpha1")
    assert "Whether the machine is to run." in said


def test_appliers_share_lists_by_name(plane, namespace) -> None:
    """Two managers own a network each; neither removes the other's."""
    for manager, name in (("ann", "red"), ("bob", "blue")):
        text = json.dumps(vm(networks=[{"name": name}]))
        flags = ("--server-side", f"--field-manager={manager}", "-n", namespace)
        plane.kubectl("apply", *flags, "-f", "-", input=text)
    kept = json.loads(plane.kubectl("get", "-n", namespace, "vm.novacron.io/vm", "-o", "json"))
    networks = kept["spec"]["template"]["spec"]["networks"]
    assert {entry["name"] for entry in networks} == {"red", "blue"}
