"""Live migrations that are played: the words of the two virt-handlers, one after the other.

Each call takes one step, as the real ones do when they see what the other wrote; in the end the
target takes the instance over, with the CPUs and memory that the migration was to bring.
"""

from novacron.localcluster.kubevirt.standin.migratable import drop_condition
from novacron.localcluster.kubevirt.standin.pods import is_over, is_running
from novacron.localcluster.kubevirt.standin.wishes import failure, held
from novacron.localcluster.kubevirt.standin.world import now
from novacron.runtime.resource import Object

__all__ = ["migrate"]

ADDRESS = "127.0.0.1"
POD_CPU = "kubevirt.io/vmi-pod-cpu-resource-limits"
POD_MEMORY = "kubevirt.io/vmi-pod-memory-resource-requests"
OVERHEAD = "kubevirt.io/memory-hotplug-overhead-ratio"
NODE_LABEL = "kubevirt.io/nodeName"
TARGET_LABEL = "kubevirt.io/migrationTargetNodeName"


def migrate(instance: Object, pods: list[Object], migration: Object | None) -> None:
    """Take the next step of the instance's migration, if one is under way."""
    move = instance["status"]["migrationState"]
    target = next((p for p in pods if p["metadata"]["name"] == move.get("targetPod")), None)
    if move.get("completed") or target is None or held(migration):
        return
    if is_over(target) or not is_running(target):
        return  # virt-controller sees by itself that it failed
    if move.get("abortRequested"):
        _end(move, "Live migration aborted", abortStatus="Succeeded")
    elif not move.get("targetNodeAddress"):
        move["targetNodeAddress"] = ADDRESS
        move["targetDirectMigrationNodePorts"] = {"49152": 0}
        _also(move, nodeAddress=ADDRESS)
    elif not move.get("startTimestamp"):
        move |= {"startTimestamp": now(), "mode": "PreCopy"}
    elif message := failure([migration]):
        _end(move, message)
    elif not move.get("targetNodeDomainReadyTimestamp"):
        move |= {"targetNodeDomainDetected": True, "targetNodeDomainReadyTimestamp": now()}
        _also(move, domainDetected=True, domainReadyTimestamp=now())
        drop_condition(instance, "MigrationRequired")
    else:
        _take_over(instance, move)


def _end(move: Object, reason: str, **more: str) -> None:
    move |= {"failed": True, "completed": True, "endTimestamp": now(), "failureReason": reason}
    move |= more


def _also(move: Object, **facts: object) -> None:
    """Say it a second time where newer readers look for it."""
    if "targetState" in move:
        move["targetState"] |= facts


def _take_over(instance: Object, move: Object) -> None:
    status, labels = instance["status"], instance["metadata"].setdefault("labels", {})
    labels[NODE_LABEL] = status["nodeName"] = move["targetNode"]
    status.pop("evacuationNodeName", None)
    status.pop("migratedVolumes", None)
    status.pop("launcherContainerImageVersion", None)
    _grow(instance, labels)
    drop_condition(instance, "VolumesChange")
    labels.pop(TARGET_LABEL, None)
    move |= {"endTimestamp": now(), "completed": True}


def _grow(instance: Object, labels: dict[str, str]) -> None:
    """Have the CPUs and the memory that were asked for meanwhile."""
    status, domain = instance["status"], instance["spec"]["domain"]
    asked = {each["type"] for each in status.get("conditions") or ()}
    if "HotVCPUChange" in asked:
        cpu = domain["cpu"]
        parts = ("cores", "sockets", "threads")
        status["currentCPUTopology"] = {part: cpu[part] for part in parts if part in cpu}
    if "HotMemoryChange" in asked:
        status["memory"]["guestRequested"] = domain["memory"]["guest"]
        status["memory"]["guestCurrent"] = domain["memory"]["guest"]
    for kind in ("HotVCPUChange", "HotMemoryChange"):
        drop_condition(instance, kind)
    for label in (POD_CPU, POD_MEMORY, OVERHEAD):
        labels.pop(label, None)
