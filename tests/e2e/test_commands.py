"""Machines and hosts by the command line, on a whole local cluster."""

import json
import uuid

import pytest

from novacron import __version__
from novacron.localcluster.node.ability import inability


@pytest.fixture
def name(local_cluster):
    """A machine's name for one test; the machine is gone when the test ends."""
    chosen = f"m-{uuid.uuid4().hex[:8]}"
    yield chosen
    local_cluster.call("vm", "delete", chosen, "--wait")


def _phase(local_cluster, name):
    return local_cluster.json("vm", "get", name)["status"]["phase"]


def test_a_machine_from_creation_to_deletion(local_cluster, name):
    """The whole life, each step waited for."""
    said = local_cluster.ok("vm", "create", name, "--image", "builtin://tiny", "--wait")
    assert said == f"virtualmachines.novacron.io/{name} created\n"
    assert _phase(local_cluster, name) == "Running"
    assert "stopped" in local_cluster.ok("vm", "stop", name, "--wait")
    assert _phase(local_cluster, name) == "Stopped"
    assert "started" in local_cluster.ok("vm", "start", name, "--wait")
    assert "restarted" in local_cluster.ok("vm", "restart", name)
    assert _phase(local_cluster, name) == "Running"
    assert "deleted" in local_cluster.ok("vm", "delete", name, "--wait")
    assert local_cluster.fails("vm", "get", name) == (
        f'no virtual machine "{name}" in namespace "default"'
    )


def test_a_machine_can_be_created_at_rest(local_cluster, name):
    """Prepared now, started later."""
    flags = ("--cpu", "2", "--memory", "2Gi", "--disk", "20Gi", "--no-running", "--wait")
    local_cluster.ok("vm", "create", name, "--image", "builtin://tiny", *flags)
    machine = local_cluster.json("vm", "get", name)
    assert machine["status"]["phase"] == "Stopped"
    wanted = machine["spec"]["template"]["spec"]["resources"]
    assert wanted == {"cpu": 2, "memory": "2Gi", "disk": "20Gi"}


def test_reading_machines(local_cluster):
    """As a table, for a program, and all about one."""
    assert local_cluster.ok("vm", "list").splitlines()[0].split() == [
        *("NAME", "PHASE", "NODE", "IP", "AGE")
    ]
    everywhere = local_cluster.ok("vm", "list", "-A").splitlines()
    assert everywhere[0].startswith("NAMESPACE")
    names = [item["metadata"]["name"] for item in local_cluster.json("vm", "list")["items"]]
    assert "hello" in names
    page = local_cluster.ok("vm", "describe", "hello")
    assert "Conditions" in page
    assert "VMReady" in page
    assert local_cluster.json("vm", "describe", "hello")["machine"]["kind"] == "VirtualMachine"


def test_refusals_are_one_sentence(local_cluster):
    """Whoever refuses, the user reads what and why."""
    image = ("--image", "builtin://tiny")
    assert local_cluster.fails("vm", "create", "hello", *image) == (
        'a virtual machine "hello" exists already in namespace "default"'
    )
    assert local_cluster.fails("vm", "create", "x", *image, "-n", "nowhere") == (
        'no namespace "nowhere"'
    )
    assert "must be at least 64Mi" in local_cluster.fails(
        "vm", "create", "x", *image, "--memory", "1Mi"
    )
    for verb in ("get", "start", "stop", "restart", "delete", "describe"):
        assert 'no virtual machine "ghost"' in local_cluster.fails("vm", verb, "ghost")
    for verb in ("get", "cordon", "uncordon", "remove"):
        assert local_cluster.fails("host", verb, "ghost") == 'no host "ghost"'


def test_a_wait_that_takes_too_long_says_how_it_stands(local_cluster, name):
    """No host has room: the reason is in the last line."""
    flags = ("--cpu", "999", "--wait", "--timeout", "5")
    said = local_cluster.call("vm", "create", name, "--image", "builtin://tiny", *flags)
    assert said.returncode == 1
    assert f"error: {name} was not as wanted after 5 s; it is Pending" in said.stderr


def test_hosts_are_added_closed_and_removed(local_cluster, name):
    """With labels and taints; and not from under a machine."""
    flags = ("--cpu", "4", "--label", "zone=a", "--taint", "gpu=yes:NoSchedule")
    local_cluster.ok("host", "add", name, *flags)
    spec = local_cluster.json("host", "get", name)["spec"]
    assert spec["labels"] == {"zone": "a"}
    assert spec["taints"] == [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]
    assert spec["simulation"]["capacity"]["cpu"] == 4
    assert local_cluster.fails("host", "add", name) == f'a host "{name}" exists already'
    local_cluster.ok("host", "cordon", name)
    assert local_cluster.json("host", "get", name)["spec"]["unschedulable"]
    local_cluster.ok("host", "uncordon", name)
    assert name in local_cluster.ok("host", "list")
    local_cluster.ok("host", "remove", name)
    said = local_cluster.fails("host", "remove", "local")
    assert 'host "local" still has' in said
    assert "default/hello" in said


def test_the_clusters_own_kubectl_is_at_hand(local_cluster):
    """Nothing has to be installed to look inside."""
    listed = json.loads(local_cluster.ok("kubectl", "get", "vm", "hello", "-o", "json"))
    assert listed["metadata"]["name"] == "hello"
    made = local_cluster.ok(
        *("kubectl", "-n", "default", "run", "x", "--image=novacron/novacron"),
        *("--dry-run=client", "-o", "json", "--", "--help"),
    )
    assert json.loads(made)["spec"]["containers"][0]["args"] == ["--help"]
    components = local_cluster.json("status")["components"]
    assert {each["state"] for each in components} == {"running"}


def test_a_pod_of_our_own_image_runs(local_cluster):
    """What a chart installs runs here too, without containers."""
    if problem := inability():
        pytest.skip(problem)
    kubectl = ("kubectl", "run", "version", "--image=novacron/novacron", "--restart=Never")
    local_cluster.ok(*kubectl, "--command", "--", "novacron", "--version")
    done = "--for=jsonpath={.status.phase}=Succeeded"
    local_cluster.ok("kubectl", "wait", "pod/version", done, "--timeout=60s")
    assert local_cluster.ok("kubectl", "logs", "version") == f"novacron {__version__}\n"
    local_cluster.ok("kubectl", "delete", "pod", "version")


def test_definitions_can_be_installed_again(local_cluster):
    """An upgrade is the same command, and the least memory that this cluster was given stays."""
    definition = ("kubectl", "get", "crd", "virtualmachines.novacron.io", "-o", "yaml")
    assert "must be at least 64Mi" in local_cluster.ok(*definition)
    assert "virtualmachines.novacron.io installed" in local_cluster.ok("crd", "install")
    assert "must be at least 64Mi" in local_cluster.ok(*definition)
