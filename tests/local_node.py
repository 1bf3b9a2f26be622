"""A local cluster with a node, for tests: pods of our own image and what becomes of them."""

import os
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from api import Api, Refused
from novacron.localcluster.controlplane import ControlPlane
from novacron.localcluster.identity import Identity
from novacron.localcluster.node.network import cable_of
from novacron.localcluster.node.records import PodRecord, Start, pod_records
from novacron.localcluster.node.subnet import recorded
from operators import eventually

__all__ = [
    "IMAGE",
    "NodeCluster",
    "container",
    "is_ready",
    "processes_with",
    "sleeper",
    "traces_of",
]

Object = dict[str, Any]

IMAGE = "novacron/novacron:test"
# Ends when it is asked to, as a good container does; prints so that logs have something.
PATIENT = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print('here', flush=True)
while True:
    time.sleep(0.1)
"""


def container(script: str, name: str = "main", **more: Any) -> Object:
    """Return a container of our image that runs a Python script."""
    command = ["python", "-u", "-c", script]
    return {"name": name, "image": IMAGE, "command": command, **more}


def sleeper(**more: Any) -> Object:
    """Return a container that runs until it is asked to end."""
    return container(PATIENT, **more)


@dataclass(slots=True)
class NodeCluster:
    """A control plane whose node runs, and one namespace in it."""

    plane: ControlPlane
    api: Api
    namespace: str = field(default_factory=lambda: f"node-{uuid4().hex[:8]}")

    @property
    def directory(self) -> Path:
        """Return where the node keeps its pods."""
        return self.plane.directory / "node"

    def begin(self) -> "NodeCluster":
        """Make the namespace, and wait until pods in it may have a token."""
        self.api.create_namespace(self.namespace)
        path = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/default"
        eventually(lambda: self._find(path) is not None, lambda: "the service account is there")
        return self

    def create(self, kind: str, obj: Object) -> Object:
        """Create an object of a built-in kind."""
        return self.api.call("POST", self._path(kind), obj)

    def pod(self, *containers: Object, name: str | None = None, **spec: Any) -> str:
        """Create a pod and return its name."""
        name = name or f"pod-{uuid4().hex[:6]}"
        body = {"metadata": {"name": name, "labels": {"app": name}}}
        # Whoever is asked to end before its program has begun to listen is ended by force.
        grace = {"terminationGracePeriodSeconds": 3}
        self.create("pods", {**body, "spec": {"containers": list(containers), **grace, **spec}})
        return name

    def get(self, name: str, kind: str = "pods") -> Object | None:
        """Return an object, or None when there is none."""
        return self._find(f"{self._path(kind)}/{name}")

    def delete(self, name: str, kind: str = "pods", grace: int | None = None) -> None:
        """Ask for an object to be deleted."""
        body = None if grace is None else {"gracePeriodSeconds": grace}
        self.api.call("DELETE", f"{self._path(kind)}/{name}", body)

    def patch(self, name: str, patch: Object, kind: str) -> None:
        """Merge a patch into an object."""
        self.api.call("PATCH", f"{self._path(kind)}/{name}", patch, merge=True)

    def until(
        self, name: str, claim: Callable[[Object], bool], kind: str = "pods", seconds: float = 60
    ) -> Object:
        """Wait until a claim holds of an object, and return it."""
        seen: list[Object | None] = [None]

        def holds() -> bool:
            seen[0] = self.get(name, kind)
            return seen[0] is not None and claim(seen[0])

        eventually(holds, lambda: f"{name} is {seen[0]}\n{self.log()}", seconds)
        assert seen[0] is not None
        return seen[0]

    def until_ready(self, name: str) -> Object:
        """Wait until a pod is ready."""
        return self.until(name, is_ready)

    def until_phase(self, name: str, phase: str) -> Object:
        """Wait until a pod is in a phase."""
        return self.until(name, lambda pod: pod["status"].get("phase") == phase)

    def until_gone(self, name: str) -> None:
        """Wait until a pod is no more."""
        eventually(lambda: self.get(name) is None, lambda: f"{name} is gone\n{self.log()}")

    def until_said(self, name: str, text: str, *flags: str) -> str:
        """Wait until a pod's log has a text, and return the log."""
        seen = [""]

        def said() -> bool:
            seen[0] = self.logs(name, *flags)
            return text in seen[0]

        eventually(said, lambda: f"{name} says {text!r}: {seen[0]!r}\n{self.log()}")
        return seen[0]

    def events(self, name: str, reason: str) -> list[Object]:
        """Return the events about an object with a reason."""
        return [each for each in self.api.events(self.namespace, name) if each["reason"] == reason]

    def until_event(self, name: str, reason: str) -> Object:
        """Wait for an event about an object."""
        eventually(lambda: bool(self.events(name, reason)), lambda: f"event {reason} of {name}")
        return self.events(name, reason)[0]

    def logs(self, name: str, *flags: str) -> str:
        """Return what `kubectl logs` shows; nothing when it fails."""
        return self.kubectl("logs", name, *flags).stdout

    def kubectl(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run kubectl in the namespace."""
        program = [self.plane.binaries / "kubectl", "--kubeconfig", self.plane.kubeconfig]
        return subprocess.run(
            [*program, "-n", self.namespace, *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def record(self, name: str) -> PodRecord:
        """Return what the node remembers of a pod."""
        pod = self.get(name)
        assert pod is not None
        found = PodRecord.read(self.directory / "pods" / pod["metadata"]["uid"])
        assert found is not None
        return found

    def start_of(self, name: str, container: str = "main") -> Start:
        """Return the run of a container that is under way."""
        start = self.record(name).container(container).start()
        assert start is not None
        return start

    def agent(self) -> Identity:
        """Return the agent's own process, below its supervisor."""
        supervisor = self.plane.running("node")
        assert supervisor is not None
        children = Path(f"/proc/{supervisor.pid}/task/{supervisor.pid}/children")
        found: list[Identity] = []

        def there() -> bool:
            found[:] = [
                one for pid in children.read_text().split() if (one := Identity.of(int(pid)))
            ]
            return bool(found)

        eventually(there, lambda: "the agent runs")
        return found[0]

    def kill_agent(self) -> None:
        """End the agent and its supervisor as a crash would."""
        agent = self.agent()
        self.plane.kill("node")
        eventually(lambda: not agent.alive(), lambda: "the agent is dead")

    def start_agent(self) -> None:
        """Start the agent again, as ``up`` does, and wait until it serves."""
        self.plane.start()

    def log(self) -> str:
        """Return the end of the agent's log."""
        return self.plane.processes.tail("node", 40)

    def clear(self) -> None:
        """Remove everything the test made."""
        for kind in ("deployments", "jobs", "services"):
            for item in self.api.call("GET", self._path(kind))["items"]:
                self.delete(item["metadata"]["name"], kind)
        for item in self.api.call("GET", self._path("pods"))["items"]:
            with suppress(Refused):  # it may be going this moment
                self.delete(item["metadata"]["name"], grace=0)

    def _path(self, kind: str) -> str:
        groups = {"deployments": "apps/v1", "jobs": "batch/v1"}
        base = f"/apis/{groups[kind]}" if kind in groups else "/api/v1"
        return f"{base}/namespaces/{self.namespace}/{kind}"

    def _find(self, path: str) -> Object | None:
        try:
            return self.api.call("GET", path)
        except Refused as refused:
            if refused.code == 404:
                return None
            raise


def is_ready(pod: Object) -> bool:
    """Say whether a pod is ready."""
    conditions = pod["status"].get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def processes_with(text: str) -> list[int]:
    """Return every process whose command line or environment has a text."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            known = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
        except OSError:
            continue
        if text.encode() in known and int(entry.name) != os.getpid():
            found.append(int(entry.name))
    return found


def traces_of(plane: ControlPlane) -> list[str]:
    """Return what a node's pods left on this machine: links and mounts.

    A network namespace is left only if a process is in it.
    """
    directory = plane.directory / "node"
    subnet = recorded(directory)
    assert subnet is not None
    cables = {cable_of(record.uid) for record in pod_records(directory)} | {subnet.bridge}
    links = [name for _, name in socket.if_nameindex() if name in cables]
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    return links + [line for line in mounts if str(plane.directory) in line]
