"""The nodes that are played: their objects, their leases, and what KubeVirt looks for on them."""

import asyncio
import contextlib
import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import novacron
from novacron.localcluster.kubevirt.names import HANDLER, LAUNCHER_IMAGE, NAMESPACE
from novacron.localcluster.kubevirt.standin.world import NODES, PODS, World, now
from novacron.runtime.errors import AlreadyExists, ApiError, NotFound
from novacron.runtime.resource import LEASES, Key, Object

__all__ = ["Nodes"]

log = logging.getLogger(__name__)

LEASE_NAMESPACE = "kube-node-lease"
LEASE_SECONDS = 40
BEAT_SECONDS = 10.0
# virt-controller gives a node up after five minutes without one.
BEATS_PER_HEARTBEAT = 6
HEARTBEAT = "kubevirt.io/heartbeat"
ABOUT = "a stand-in for a node: pods and guests on it are only said to run"
CPU_MODEL = "Skylake-Server"
MACHINE_TYPES = ("q35", "pc-q35", "pc-q35-rhel9.6.0")
HYPERV = (
    *("base", "frequencies", "ipi", "reenlightenment", "reset", "runtime"),
    *("synic", "synic2", "synictimer", "time", "tlbflush", "vpindex"),
)
ROOM = {
    "cpu": "128",
    "memory": "2Ti",
    "ephemeral-storage": "10Ti",
    "pods": "1000",
    **{f"devices.kubevirt.io/{device}": "1000" for device in ("kvm", "tun", "vhost-net")},
}
# Pods that may run elsewhere do so; those of KubeVirt may not.
TAINT = {"key": "stand-in.novacron.io/node", "value": "true", "effect": "PreferNoSchedule"}


@dataclass(slots=True)
class Nodes:
    """All nodes that are played."""

    world: World

    async def run(self) -> None:
        """Show for ever that they are alive, those that are."""
        beats = 0
        while True:
            for name in self.world.names:
                await self._beat(name, heartbeat=beats % BEATS_PER_HEARTBEAT == 0)
            beats += 1
            await asyncio.sleep(BEAT_SECONDS)

    async def reconcile(self, key: Key) -> timedelta | None:
        """Have a node as it must be, also one that was deleted or has come back to life."""
        if key.name not in self.world.names:
            return None
        await self._deploy(key.name)
        node = self.world.nodes.get(key)
        if node is None:
            await self._register(key.name)
        elif self.world.alive(key.name) and not _is_ready(node):
            await self._speak(key.name)
            await self._beat(key.name, heartbeat=True)
        return None

    async def _deploy(self, name: str) -> None:
        """Have the pod by which virt-api finds the node's virt-handler."""
        if self.world.pods.get(Key(NAMESPACE, f"virt-handler-{name}")) is None:
            with contextlib.suppress(AlreadyExists):
                await self.world.client.create(PODS, _handler(name))

    async def _register(self, name: str) -> None:
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        body = node | {"spec": {"taints": [TAINT]}}
        body["metadata"] = {"name": name, "labels": _labels(name), "annotations": _notes()}
        try:
            await self.world.client.create(NODES, body)
        except AlreadyExists:
            return
        await self._speak(name)

    async def _speak(self, name: str) -> None:
        await self.world.client.patch(NODES, name, {"status": _status(name)}, subresource="status")

    async def _beat(self, name: str, *, heartbeat: bool) -> None:
        if not self.world.alive(name):
            return
        try:
            await self._renew(name)
            if heartbeat:
                note = {"metadata": {"annotations": _notes(), "labels": _labels(name)}}
                await self.world.client.patch(NODES, name, note)
        except NotFound:
            return  # it was deleted, and is about to be made anew
        except ApiError as error:
            log.warning("no heartbeat of %s: %s", name, error.message)

    async def _renew(self, name: str) -> None:
        renewed = {"renewTime": datetime.now(UTC).isoformat().replace("+00:00", "Z")}
        try:
            await self.world.client.patch(LEASES, name, {"spec": renewed}, LEASE_NAMESPACE)
        except NotFound:
            spec = {"holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS, **renewed}
            metadata = {"name": name, "namespace": LEASE_NAMESPACE}
            lease = {"apiVersion": LEASES.api_version, "kind": LEASES.kind}
            await self.world.client.create(LEASES, {**lease, "metadata": metadata, "spec": spec})


def _handler(node: str) -> Object:
    container = {"name": "virt-handler", "image": LAUNCHER_IMAGE}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"virt-handler-{node}",
            "namespace": NAMESPACE,
            "labels": {"kubevirt.io": HANDLER},
        },
        "spec": {
            "nodeName": node,
            "containers": [container],
            "serviceAccountName": "kubevirt-handler",
            "automountServiceAccountToken": False,
            "tolerations": [{"operator": "Exists"}],
        },
    }


def _labels(name: str) -> dict[str, str]:
    capabilities = (
        f"cpu-model.node.kubevirt.io/{CPU_MODEL}",
        f"cpu-model-migration.node.kubevirt.io/{CPU_MODEL}",
        f"host-model-cpu.node.kubevirt.io/{CPU_MODEL}",
        "cpu-vendor.node.kubevirt.io/Intel",
        *(f"machine-type.node.kubevirt.io/{each}" for each in MACHINE_TYPES),
        *(f"hyperv.node.kubevirt.io/{each}" for each in HYPERV),
        "kubevirt.io/schedulable",
    )
    return {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "stand-in.novacron.io/node": "true",
        **dict.fromkeys(capabilities, "true"),
    }


def _notes() -> dict[str, str]:
    return {HEARTBEAT: now(), "novacron.io/about": ABOUT}


def _status(name: str) -> Object:
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "StandInReady",
        "message": ABOUT,
        "lastHeartbeatTime": now(),
        "lastTransitionTime": now(),
    }
    info = dict.fromkeys(("machineID", "systemUUID", "bootID", "kubeProxyVersion"), "")
    versions = {
        "kernelVersion": "none",
        "osImage": "a stand-in",
        "operatingSystem": "linux",
        "architecture": "amd64",
        "containerRuntimeVersion": f"stand-in://{novacron.__version__}",
        "kubeletVersion": f"v{novacron.__version__}-stand-in",
    }
    return {
        "capacity": ROOM,
        "allocatable": ROOM,
        "addresses": [{"type": "Hostname", "address": name}],
        "nodeInfo": info | versions,
        "conditions": [condition],
    }


def _is_ready(node: Object) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
