"""A throw-away control plane with our kinds on it, and operators started against it.

Only etcd and the API server run: no other controller takes part in what is measured.
"""

import json
import signal
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from bench.contenders import Contender
from bench.machines import API_VERSION, CANARY, host, machine
from bench.measure import Usage, Write, usage, writes
from novacron.localcluster.binaries import locate
from novacron.localcluster.controlplane import ControlPlane, Options
from novacron.localcluster.errors import LocalClusterError
from novacron.localcluster.identity import Identity
from novacron.localcluster.processes import Processes, Program
from novacron.workplace.files import private_directory
from novacron.workplace.home import Home
from novacron.workplace.progress import Silent

__all__ = ["Cluster", "Operator", "throwaway_cluster"]

CRDS = Path(__file__).parent.parent / "charts" / "novacron" / "crds"
HOSTS = 20
OPERATOR_NAMESPACE = "novacron-system"
READY_WITHIN = timedelta(seconds=60)
PROBE_TIMEOUT_S = 5
POLL_S = 0.1


@dataclass(frozen=True)
class Operator:
    """A contender's process."""

    name: str
    identity: Identity
    processes: Processes
    ready_s: float

    @property
    def usage(self) -> Usage:
        """Return what it has cost so far, its children included."""
        return usage(self.identity.pid)

    def check_alive(self) -> None:
        """Raise with the end of its log when it has died."""
        if not self.identity.alive():
            raise RuntimeError(f"{self.name} died:\n{self.tail}")

    @property
    def tail(self) -> str:
        """Return the end of its log."""
        return self.processes.tail(self.name)


@dataclass(frozen=True)
class Cluster:
    """A running control plane."""

    plane: ControlPlane

    @property
    def kubeconfig(self) -> Path:
        """Return the administrator's kubeconfig."""
        return self.plane.kubeconfig

    def cpu_s(self, component: str) -> float:
        """Return the CPU time that a part of the control plane has taken so far."""
        process = self.plane.running(component)
        if process is None:
            raise RuntimeError(f"{component} died")
        return usage(process.pid).cpu_s

    def writes(self) -> Counter[Write]:
        """Return what was written so far, by the server's own count."""
        return writes(self.plane.kubectl("get", "--raw", "/metrics"))

    def create(self, *objects: dict[str, Any]) -> None:
        """Create the objects."""
        items = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.plane.kubectl("create", "-f", "-", input=json.dumps(items))

    @contextmanager
    def running(self, contender: Contender) -> Iterator[Operator]:
        """Start the operator, wait until it says it is ready, and stop it afterwards."""
        scratch = private_directory(self.plane.directory / contender.name)
        launch = contender.launch(self.kubeconfig, scratch)
        processes = self.plane.processes
        program = Program(contender.name, launch.command, launch.environment)
        begun = time.monotonic()
        processes.start(program)
        try:
            processes.wait_ready(contender.name, lambda: _answers(launch.ready_url), READY_WITHIN)
            ready_s = time.monotonic() - begun
            identity = processes.running(contender.name)
            assert identity is not None
            yield Operator(contender.name, identity, processes, ready_s)
        finally:
            processes.stop(contender.name)

    def prove(self) -> None:
        """Have the operator bring one machine to Running: whoever does is watching for sure."""
        self.create(machine(CANARY))
        self.plane.kubectl(
            *("wait", f"virtualmachines.novacron.io/{CANARY}", "--timeout=60s"),
            "--for=jsonpath={.status.phase}=Running",
        )


@contextmanager
def throwaway_cluster(simulated_hosts: int = HOSTS) -> Iterator[Cluster]:
    """Start a control plane with our kinds and hosts; nothing of it is left afterwards."""
    # Without this, `kill` would leave the control plane behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with tempfile.TemporaryDirectory(prefix="novacron-bench-") as directory:
        options = Options(components=("etcd", "kube-apiserver"), fsync=False)
        binaries = locate(Home.default().cache, None, Silent())
        plane = ControlPlane(Path(directory), binaries, options)
        try:
            plane.start()
            plane.kubectl("create", "-f", str(CRDS))
            _wait_served(plane)
            plane.kubectl("create", "namespace", OPERATOR_NAMESPACE)
            cluster = Cluster(plane)
            if simulated_hosts:
                cluster.create(*(host(f"host-{number}") for number in range(simulated_hosts)))
            yield cluster
        finally:
            plane.stop()


def _wait_served(plane: ControlPlane) -> None:
    """Wait for our kinds; `kubectl wait` fails on a definition that has no condition yet."""
    deadline = time.monotonic() + READY_WITHIN.total_seconds()
    while time.monotonic() < deadline:
        with suppress(LocalClusterError):
            served = plane.kubectl("get", "--raw", f"/apis/{API_VERSION}")
            names = {kind["name"] for kind in json.loads(served)["resources"]}
            if {"hosts", "virtualmachines"} <= names:
                return
        time.sleep(POLL_S)
    raise RuntimeError("the API server does not serve our kinds")


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=PROBE_TIMEOUT_S) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
