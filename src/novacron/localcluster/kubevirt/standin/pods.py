"""Pods on the nodes that are played: said to run, to fail, to end, and gone when deleted."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from novacron.localcluster.kubevirt.names import HANDLER
from novacron.localcluster.kubevirt.standin.wishes import failure, held, wishes
from novacron.localcluster.kubevirt.standin.world import PODS, World, now, vanish
from novacron.localcluster.ports import LOOPBACK
from novacron.runtime.errors import NotFound
from novacron.runtime.resource import Key, Object, key_of

__all__ = ["Pods", "is_active", "is_over", "is_running", "owner_of"]

OVER = ("Succeeded", "Failed")
READINESS = ("Initialized", "Ready", "ContainersReady", "PodReadyToStartContainers")
OWNER_KIND = "VirtualMachineInstance"
LAUNCHER = {"kubevirt.io": "virt-launcher"}
WANTED_NETWORKS = "k8s.v1.cni.cncf.io/networks"
GIVEN_NETWORKS = "k8s.v1.cni.cncf.io/network-status"


@dataclass(slots=True)
class Pods:
    """All pods on nodes of ours."""

    world: World

    async def reconcile(self, key: Key) -> timedelta | None:
        """Say of one pod what its kubelet would."""
        pod = self.world.pods.get(key)
        if pod is None or not self.world.alive(pod["spec"].get("nodeName")):
            return None
        instance = self._instance(pod)
        if "deletionTimestamp" in pod["metadata"]:
            if instance is None or not is_active(pod, instance):
                await vanish(self.world.client, PODS, pod)
            # Otherwise the guest is shut down first; that changes the instance.
        elif not is_over(pod) and (instance or not owner_of(pod)):
            # A pod may be seen sooner than the instance it is there for.
            await self._go_on(pod, instance)
        return None

    def related(self, instance: Object) -> Iterator[Key]:
        """Return which pods may have to be looked at when an instance changes."""
        return (key_of(pod) for pod in self.world.pods_of(instance))

    def _instance(self, pod: Object) -> Object | None:
        owner = owner_of(pod)
        found = self.world.instances.get(owner) if owner else None
        return found if found and _label(pod, "kubevirt.io/created-by") == _uid(found) else None

    async def _go_on(self, pod: Object, instance: Object | None) -> None:
        # A pod has the annotations of its instance, and there they are heeded.
        own = None if instance and wishes(instance) else pod
        if held(own):
            return
        if message := failure([own]):
            await self._say(pod, _ended(pod, "Failed", message))
        elif instance and _is_done_with(pod, instance):
            await self._say(pod, _ended(pod, "Succeeded", "the guest is gone"))
        elif not is_running(pod):
            await self._attach(pod)
            near = _label(pod, "kubevirt.io") == HANDLER
            address = LOOPBACK if near else self.world.addresses.of(key_of(pod), _uid(pod))
            await self._say(pod, _running(pod, address))

    async def _attach(self, pod: Object) -> None:
        """Say that Multus has made the pod's further interfaces."""
        wanted = json.loads(_notes(pod).get(WANTED_NETWORKS) or "[]")
        if not wanted or GIVEN_NETWORKS in _notes(pod):
            return
        given = [{"name": "pod-network", "interface": "eth0", "default": True}]
        for network in wanted:
            name = f"{network.get('namespace')}/{network['name']}"
            given.append({"name": name, "interface": network.get("interface")})
        note = {"metadata": {"annotations": {GIVEN_NETWORKS: json.dumps(given)}}}
        key = key_of(pod)
        await self.world.client.patch(PODS, key.name, note, key.namespace)

    async def _say(self, pod: Object, status: Object) -> None:
        key = key_of(pod)
        body = {"status": status}
        try:
            await self.world.client.patch(PODS, key.name, body, key.namespace, subresource="status")
        except NotFound:
            return


def owner_of(pod: Object) -> Key | None:
    """Return the instance whose guest the pod is there for."""
    for owner in pod["metadata"].get("ownerReferences") or ():
        if owner["kind"] == OWNER_KIND:
            return Key(pod["metadata"]["namespace"], owner["name"])
    return None


def is_over(pod: Object) -> bool:
    """Say whether nothing of a pod runs any more."""
    return (pod.get("status") or {}).get("phase") in OVER


def is_running(pod: Object) -> bool:
    """Say whether a pod's containers run."""
    return (pod.get("status") or {}).get("phase") == "Running"


def is_active(pod: Object, instance: Object) -> bool:
    """Say whether the guest of an instance is in this pod now."""
    status = instance.get("status") or {}
    launcher = _label(pod, "kubevirt.io") == LAUNCHER["kubevirt.io"]
    here = status.get("nodeName") == pod["spec"].get("nodeName")
    migrated = (status.get("migrationState") or {}).get("targetPod")
    moved_away = _has_moved(instance) and migrated != pod["metadata"]["name"]
    going = status.get("phase") in ("Scheduled", "Running")
    return launcher and here and going and not moved_away and not is_over(pod)


def _has_moved(instance: Object) -> bool:
    move = (instance.get("status") or {}).get("migrationState") or {}
    return bool(move.get("completed")) and not move.get("failed")


def _is_done_with(pod: Object, instance: Object) -> bool:
    """Say whether an instance has ended, or has left this pod behind, or never came."""
    if _label(pod, "kubevirt.io") != LAUNCHER["kubevirt.io"]:
        return False
    status = instance.get("status") or {}
    move = status.get("migrationState") or {}
    name = pod["metadata"]["name"]
    if status.get("phase") in OVER:
        return True
    if not move.get("completed"):
        return False
    left = move.get("targetPod") if move.get("failed") else move.get("sourcePod")
    return bool(name == left)


def _running(pod: Object, address: str) -> Object:
    conditions = [
        {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": now()}
        for kind in READINESS
    ]
    first = pod["spec"].get("initContainers") or ()
    return {
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": now(),
        "conditions": [*_said_by_others(pod), *conditions],
        "containerStatuses": [_container(c, _started(), ready=True)
                              for c in pod["spec"]["containers"]],
        "initContainerStatuses": [_container(c, _started() if _stays(c) else _exit(0), ready=True)
                                  for c in first],
    }  # fmt: skip


def _ended(pod: Object, phase: str, message: str) -> Object:
    code = 0 if phase == "Succeeded" else 1
    return {
        "phase": phase,
        "message": message,
        "containerStatuses": [_container(c, _exit(code), ready=False)
                              for c in pod["spec"]["containers"]],
    }  # fmt: skip


def _stays(container: Object) -> bool:
    """Say whether a container that comes first runs on beside the others."""
    return container.get("restartPolicy") == "Always"


def _started() -> Object:
    return {"running": {"startedAt": now()}}


def _exit(code: int) -> Object:
    reason = "Error" if code else "Completed"
    times = {"startedAt": now(), "finishedAt": now()}
    return {"terminated": {"exitCode": code, "reason": reason, **times}}


def _container(container: Object, state: Object, *, ready: bool) -> Object:
    image = container["image"]
    digest = hashlib.sha256(image.encode()).hexdigest()
    # Without a digest KubeVirt cannot have a disk in an image twice, as a migration does.
    repository = image.partition("@")[0].rpartition(":")[0] or image
    return {
        "name": container["name"],
        "image": image,
        "imageID": f"{repository}@sha256:{digest}",
        "containerID": f"stand-in://{digest}",
        "ready": ready,
        "started": ready,
        "restartCount": 0,
        "state": state,
    }


def _said_by_others(pod: Object) -> list[Object]:
    """Return what the scheduler and KubeVirt said: a patch replaces the whole list."""
    said = (pod.get("status") or {}).get("conditions") or ()
    return [condition for condition in said if condition["type"] not in READINESS]


def _notes(pod: Object) -> dict[str, str]:
    return pod["metadata"].get("annotations") or {}


def _label(pod: Object, name: str) -> str | None:
    return (pod["metadata"].get("labels") or {}).get(name)


def _uid(obj: Object) -> str:
    return str(obj["metadata"]["uid"])
