"""The Node object and its heartbeat: what this node is, what it has, and that it is alive."""

import asyncio
import logging
import os
import platform
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import novacron
from novacron.localcluster.layout import NODE_NAME
from novacron.localcluster.node.image import OwnImage
from novacron.localcluster.node.records import now
from novacron.runtime.client import Client
from novacron.runtime.errors import AlreadyExists, ApiError, NotFound
from novacron.runtime.resource import LEASES, Object, Resource

__all__ = ["NODES", "Registration", "capacity"]

log = logging.getLogger(__name__)

NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
LEASE_NAMESPACE = "kube-node-lease"
LEASE_SECONDS = 40
BEAT_SECONDS = 10.0
# The status is written anew only now and then: the lease says that we are alive.
BEATS_PER_STATUS = 30
LONGEST_PODS = 110
LABEL = "novacron.io/development-node"
ANNOTATION = "novacron.io/about"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def capacity(directory: Path) -> dict[str, str]:
    """Return what this machine has, in the words of Kubernetes."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": str(os.cpu_count() or 1),
        "memory": f"{memory // 1024}Ki",
        "ephemeral-storage": f"{shutil.disk_usage(directory).total // 1024}Ki",
        "pods": str(LONGEST_PODS),
    }


@dataclass(frozen=True, slots=True)
class Registration:
    """This node at the API server. ``problem`` says why it can run no pods, if so."""

    client: Client
    image: OwnImage
    capacity: Mapping[str, str]
    address: str
    port: int
    problem: str | None = None

    async def register(self) -> None:
        """Make the Node or bring it up to date, and say how it is."""
        metadata = {
            "labels": {
                LABEL: "true",
                "kubernetes.io/hostname": NODE_NAME,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": _architecture(),
            },
            "annotations": {ANNOTATION: self._about()},
        }
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE_NAME, **metadata}}
        try:
            await self.client.create(NODES, node)
        except AlreadyExists:
            await self.client.patch(NODES, NODE_NAME, {"metadata": metadata})
        await self._say(self._condition())
        await self._beat()

    async def run(self) -> None:
        """Show for ever that we are alive."""
        beats = 0
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            beats += 1
            try:
                await self._beat()
                if beats % BEATS_PER_STATUS == 0:
                    await self._say(self._condition())
            except NotFound:
                await self._register_again()
            except ApiError as error:
                log.warning("no heartbeat: %s", error.message)

    async def _register_again(self) -> None:
        """Come back when somebody deleted the Node."""
        try:
            await self.register()
        except ApiError as error:
            log.warning("not registered: %s", error.message)

    async def leave(self) -> None:
        """Say that this node runs nothing until it is back."""
        await self._say(_ready("False", "NodeStopped", "the local cluster is being stopped"))

    async def _beat(self) -> None:
        renewed = {"renewTime": datetime.now(UTC).isoformat().replace("+00:00", "Z")}
        try:
            await self.client.patch(LEASES, NODE_NAME, {"spec": renewed}, LEASE_NAMESPACE)
        except NotFound:
            spec = {"holderIdentity": NODE_NAME, "leaseDurationSeconds": LEASE_SECONDS, **renewed}
            metadata = {"name": NODE_NAME, "namespace": LEASE_NAMESPACE}
            lease = {"apiVersion": LEASES.api_version, "kind": LEASES.kind}
            await self.client.create(LEASES, {**lease, "metadata": metadata, "spec": spec})

    async def _say(self, condition: Object) -> None:
        status = {
            "capacity": self.capacity,
            "allocatable": self.capacity,
            "addresses": [
                {"type": "InternalIP", "address": self.address},
                {"type": "Hostname", "address": NODE_NAME},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self.port}},
            "nodeInfo": self._info(),
            "conditions": [condition],
        }
        await self.client.patch(NODES, NODE_NAME, {"status": status}, subresource="status")

    def _condition(self) -> Object:
        if self.problem:
            return _ready("False", "CannotRunPods", self.problem)
        return _ready("True", "NodeReady", self._about())

    def _about(self) -> str:
        return (
            f"a development tool: runs pods of the image {self.image.repository} as local "
            f"processes without containers, and no others"
        )

    def _info(self) -> Object:
        system = platform.uname()
        return {
            "machineID": "",
            "systemUUID": "",
            "bootID": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
            "kernelVersion": system.release,
            "osImage": "the machine itself",
            "operatingSystem": "linux",
            "architecture": _architecture(),
            "containerRuntimeVersion": f"novacron-local://{novacron.__version__}",
            "kubeletVersion": f"v{novacron.__version__}-novacron-local",
            "kubeProxyVersion": "",
        }


def _ready(status: str, reason: str, message: str) -> Object:
    return {
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": now(),
        "lastTransitionTime": now(),
    }


def _architecture() -> str:
    machine = platform.machine()
    return ARCHITECTURES.get(machine, machine)
