"""``novacron up --with kubevirt``: what a user types, sees and has."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from local_cluster import LocalCluster, processes_under
from novacron.workplace.home import Home

pytestmark = pytest.mark.full

EXAMPLE = Path(__file__).parents[3] / "examples/kubevirt/first-vm.yaml"
MACHINE = Path(__file__).parents[3] / "examples/50-machine-basic.yaml"
PROGRAMS = {"virt-api", "virt-controller", "kubevirt-nodes"}


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A local cluster that nobody else uses."""
    cluster = LocalCluster(tmp_path_factory.mktemp("with") / "home", Home.default().cache)
    try:
        yield cluster
    finally:
        cluster.call("purge", "--yes")
    assert processes_under(cluster.home) == []


def test_one_command_gives_a_kubevirt_in_which_machines_run(local: LocalCluster) -> None:
    said = local.ok("up", "--provider", "simulation", "--with", "kubevirt")
    assert "no guest runs" in said
    assert local.pids().keys() >= PROGRAMS
    local.ok("kubectl", "apply", "-f", str(EXAMPLE))
    local.ok("kubectl", "wait", "--for=condition=Ready", "vm.kubevirt.io/first", "--timeout=60s")
    listed = local.ok("kubectl", "get", "vm,vmi")
    assert "virtualmachine.kubevirt.io/first" in listed
    assert "virtualmachineinstance.kubevirt.io/first" in listed


def test_its_operator_serves_machines(local: LocalCluster) -> None:
    """The example that the farewell names, as it is."""
    local.ok("kubectl", "apply", "-f", str(MACHINE))
    ready = ("--for=condition=Ready", "machine.vitistack.io/basic-vm", "--timeout=60s")
    local.ok("kubectl", "wait", *ready)
    listed = local.ok("kubectl", "get", "machines")
    assert listed.splitlines()[1].split()[:3] == ["basic-vm", "Running", "medium"]
    made = local.ok("kubectl", "get", "vm,vmi,pvc", "-l", "vitistack.io/machine=basic-vm")
    assert "virtualmachineinstance.kubevirt.io/basic-vm" in made
    assert "persistentvolumeclaim/basic-vm-root" in made


def test_it_goes_down_and_comes_back_without_being_asked_for(local: LocalCluster) -> None:
    said = local.ok("down")
    assert all(name in said for name in PROGRAMS)
    assert processes_under(local.home) == []
    assert "virt-api" in local.call("status").stdout
    local.ok("up")
    assert local.pids().keys() >= PROGRAMS
    for each in ("vm.kubevirt.io/first", "machine.vitistack.io/basic-vm"):
        local.ok("kubectl", "wait", "--for=condition=Ready", each, "--timeout=60s")


def test_it_is_not_added_to_somebody_elses_cluster(local: LocalCluster) -> None:
    said = local.fails("up", "--context", "elsewhere", "--with", "kubevirt")
    assert "leave out --context" in said
