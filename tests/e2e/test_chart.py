"""The chart on a cluster whose pods run: installed, its leader killed, upgraded, uninstalled.

Pods of our image are processes of this machine here (``localcluster.node``); everything else is
Kubernetes' own: Deployment, Job, Service, endpoints, tokens.
"""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from api import Api, Refused
from control_plane import throw_away
from helm import CHART, Helm, built
from local_node import traces_of
from machines import condition, host, virtual_machine
from novacron.drivers.simulation import World
from novacron.localcluster.components import COMPONENTS
from novacron.localcluster.controlplane import ControlPlane
from novacron.localcluster.errors import LocalClusterError
from novacron.localcluster.layout import Layout
from novacron.localcluster.node.ability import inability
from novacron.localcluster.node.image import IMAGE_USER
from novacron.localcluster.node.records import pod_records
from operators import eventually

Object = dict[str, Any]

OWN = "novacron-system"
VMS = "default"
KINDS = ("virtualmachines.novacron.io", "hosts.novacron.io")
CONFIGURATION = "validatingwebhookconfigurations/novacron"


@dataclass(slots=True)
class Site:
    """A cluster with a node, helm for it, and a place for simulated machines that pods share."""

    plane: ControlPlane
    helm: Helm
    api: Api
    world: Path

    def release(self, *arguments: str) -> str:
        """Install or upgrade the release, and wait until all of it is ready."""
        flags = [flag for each in arguments for flag in ("--set", each)]
        shared = f"simulation.volume.hostPath.path={self.world}"
        command = ("upgrade", "--install", "novacron", str(CHART), "--namespace", OWN)
        wait = ("--create-namespace", "--wait", "--timeout", "180s")
        try:
            return self.helm.run(*command, *wait, "--set", shared, *flags)
        except Exception as failure:
            failure.add_note(self.story())
            raise

    def story(self) -> str:
        """Return what a person would look at when pods do not come up."""
        looks = (
            ("get", "pods,jobs", "--namespace", OWN, "-o", "wide"),
            ("get", "events", "--namespace", OWN, "--sort-by=.lastTimestamp"),
            ("logs", "--namespace", OWN, "--prefix", "--tail=20", "--selector=app"),
        )
        told = []
        for look in looks:
            try:
                told.append(self.plane.kubectl(*look))
            except LocalClusterError as error:
                told.append(str(error))
        return "\n".join(told)

    def get(self, *what: str) -> list[Object]:
        """Return objects of the operator's namespace."""
        text = self.plane.kubectl("get", *what, "--namespace", OWN, "-o", "json")
        items: list[Object] = json.loads(text)["items"]
        return items

    def pods(self) -> list[Object]:
        """Return the operator's pods that are there to stay."""
        found = self.get("pods", "--selector=app=novacron-operator")
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def ready(self) -> set[str]:
        """Return the names of those that are ready."""
        return {
            pod["metadata"]["name"]
            for pod in self.pods()
            if condition(pod, "Ready").get("status") == "True"
        }

    def leader(self) -> str:
        """Return which process leads; its identity begins with the name of its pod."""
        lease = self.plane.kubectl("get", "lease", "novacron-leader", "-n", OWN, "-o", "json")
        return json.loads(lease)["spec"].get("holderIdentity") or ""

    def leading_pod(self) -> str:
        """Return the pod of the process that leads."""
        leader = self.leader()
        return next(name for name in self.ready() if leader.startswith(name))

    def process(self, pod: str) -> int:
        """Return the process of a pod's container."""
        [record] = [
            each for each in pod_records(Layout(self.plane.directory).node) if each.name == pod
        ]
        start = record.container("operator").start()
        assert start is not None
        return start.process.pid

    def machine(self, name: str) -> Object:
        """Return a machine's object."""
        found = self.api.machine(VMS, name)
        assert found is not None, f"{name} is lost"
        return found

    def until_running(self, name: str) -> Object:
        """Wait until a machine runs."""
        eventually(
            lambda: condition(self.machine(name), "Ready").get("status") == "True",
            lambda: f"{name} is {self.machine(name)}\n{self.story()}",
        )
        return self.machine(name)

    def simulated(self) -> dict[str, str]:
        """Return the simulated machines that there are, by their owner's UID."""
        with World(self.world / "simulation.db") as world:
            return {str(each.uid): each.name for each in world.machines()}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, kubernetes_binaries: Path) -> Iterator[Site]:
    """A cluster with the chart installed, one host and one machine that runs."""
    problem = inability()
    if problem:
        pytest.skip(problem)
    directory = tmp_path_factory.mktemp("site")
    world = directory / "world"
    world.mkdir()
    os.chown(world, IMAGE_USER, IMAGE_USER)
    plane = throw_away(directory / "cluster", kubernetes_binaries, COMPONENTS)
    try:
        plane.start()
        helm = Helm(built(), directory / "helm", plane.kubeconfig)
        site = Site(plane, helm, Api(plane.kubeconfig), world)
        site.release()
        site.api.create(host("host"))
        site.api.create(virtual_machine("first", VMS))
        site.until_running("first")
        yield site
        site.api.close()
    finally:
        plane.kill("kube-controller-manager")  # so that it makes no pods anew
        plane.stop()
    assert traces_of(plane) == []


def test_three_pods_are_ready_and_the_job_is_gone(site: Site) -> None:
    """With the kinds that it installed in place, and nothing left of its rights."""
    assert len(site.ready()) == 3
    assert site.leading_pod() in site.ready()
    site.plane.kubectl("get", "crd", *KINDS)
    assert site.get("jobs") == []
    names = site.plane.kubectl("get", "clusterroles,clusterrolebindings", "-o", "name")
    assert "novacron-operator" in names
    assert "novacron-crds" not in names


def test_pods_are_nobody_and_cannot_write(site: Site) -> None:
    """What the chart asks for is so."""
    for pod in site.ready():
        status = Path(f"/proc/{site.process(pod)}/status").read_text()
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        assert set(fields["Uid"].split()) == {str(IMAGE_USER)}
        assert int(fields["CapEff"], 16) == int(fields["CapBnd"], 16) == 0
        assert fields["NoNewPrivs"] == "1"
        mounts = Path(f"/proc/{site.process(pod)}/mounts").read_text().splitlines()
        [root] = [line for line in mounts if line.split()[1] == "/"]
        assert "ro" in root.split()[3].split(",")


def test_the_api_server_reaches_the_webhook_by_its_service(site: Site) -> None:
    """Certificates for the Service's name, made by the operator, trusted by the server."""

    def refused() -> str:
        try:
            site.api.call("DELETE", "/apis/novacron.io/v1alpha1/hosts/host?dryRun=All")
        except Refused as no:
            return str(no)
        return ""

    # How many there are by now depends on which tests came before.
    told = re.compile(r"host host cannot go: (1 machine is|\d+ machines are) on it")
    eventually(lambda: told.search(refused()) is not None, refused)


def test_what_was_installed_shows_no_difference(site: Site) -> None:
    """Neither what the server filled in nor what the operator did: Argo CD would undo it."""

    def filled_in() -> bool:
        told = site.plane.kubectl("get", CONFIGURATION, "-o", "json")
        return bool(json.loads(told).get("webhooks"))

    eventually(filled_in, site.story)
    manifest = site.helm.run("get", "manifest", "novacron", "--namespace", OWN)
    how = ("diff", "--server-side", "--force-conflicts", "-f", "-")
    command = [site.plane.binaries / "kubectl", "--kubeconfig", site.plane.kubeconfig, *how]
    done = subprocess.run(command, input=manifest, capture_output=True, text=True, check=False)
    assert done.stdout + done.stderr == ""


def test_killing_the_leader_hands_over(site: Site) -> None:
    """Another process goes on within seconds, and the killed one's pod comes back."""
    leader, pod = site.leader(), site.leading_pod()
    os.kill(site.process(pod), signal.SIGKILL)
    killed = time.monotonic()
    site.api.create(virtual_machine("after", VMS))
    site.until_running("after")
    assert time.monotonic() - killed < 30
    assert site.leader() not in ("", leader)
    eventually(lambda: len(site.ready()) == 3, site.story)
    restarts = {
        each["metadata"]["name"]: each["status"]["containerStatuses"][0]["restartCount"]
        for each in site.pods()
    }
    assert restarts.pop(pod) == 1
    assert set(restarts.values()) == {0}


@pytest.mark.full
def test_an_upgrade_rolls_and_no_machine_notices(site: Site) -> None:
    """Kinds first, then one pod after another; a machine never ceases to be ready."""
    before, machine, made = site.ready(), site.machine("first"), site.simulated()
    site.release("shards=3", "crdUpgrade.minimumMemory=64Mi")
    eventually(lambda: len(site.ready()) == 3, site.story)
    assert not before & site.ready()
    assert "at least 64Mi" in site.plane.kubectl("get", "crd", KINDS[0], "-o", "json")
    flags = [pod["spec"]["containers"][0]["args"] for pod in site.pods()]
    assert all("--shards=3" in each for each in flags)
    assert site.simulated() == made
    after = site.machine("first")
    assert condition(after, "Ready") == condition(machine, "Ready")
    assert after["status"]["vmID"] == machine["status"]["vmID"]
    site.api.create(virtual_machine("upgraded", VMS, memory="64Mi"))
    site.until_running("upgraded")


@pytest.mark.full
def test_uninstalling_leaves_kinds_and_machines_for_the_next_operator(site: Site) -> None:
    """Nothing of the operator's stays that could refuse anything; nothing of the user's goes."""
    machine, made = site.machine("first"), site.simulated()
    site.helm.run("uninstall", "novacron", "--namespace", OWN, "--wait", "--timeout", "120s")
    eventually(lambda: not site.get("pods"), site.story)
    site.plane.kubectl("get", "crd", *KINDS)
    with pytest.raises(LocalClusterError, match="not found"):
        site.plane.kubectl("get", CONFIGURATION)
    left = site.plane.kubectl("get", "clusterroles,clusterrolebindings", "-o", "name")
    assert "novacron" not in left
    assert site.machine("first") == machine
    assert site.simulated() == made

    site.release()
    site.api.delete_machine(VMS, "first")
    eventually(lambda: site.api.machine(VMS, "first") is None, site.story)
    assert site.simulated().keys() == made.keys() - {machine["metadata"]["uid"]}
