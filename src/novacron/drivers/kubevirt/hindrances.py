"""What keeps a machine from starting, and what a user can do about it.

Pure: objects in, a sentence out. What is over in a moment when all is well is said only after it
has taken longer than that.
"""

from datetime import datetime, timedelta
from typing import Any

from novacron.core.machine import Hindrance
from novacron.drivers.kubevirt.attention import OWN_TURN
from novacron.drivers.kubevirt.belongings import Belongings
from novacron.drivers.kubevirt.view import condition

__all__ = ["SLOW", "hindrance", "ignored", "is_pending"]

Object = dict[str, Any]

# Longer than a cluster needs for any single thing that it does by itself.
SLOW = timedelta(seconds=15)
UNSCHEDULABLE = "ErrorUnschedulable"
# What the scheduler says of a pod whose claims wait, which is no lack of room.
ABOUT_CLAIMS = "PersistentVolumeClaim"
CRASHING = "CrashLoopBackOff"
# What KubeVirt says of a machine that does not come up, and what a user can do about it.
FAILING = {
    CRASHING: "its guest ends as soon as it is started: look at its console",
    "ErrorPvcNotFound": "a disk's claim is missing and is made again",
    "ErrorDataVolumeNotFound": "the import of its image is missing",
    "DataVolumeError": "the import of its image failed: look at its DataVolume",
    "ErrImagePull": "an image cannot be pulled: check its name and the registry",
    "ImagePullBackOff": "an image cannot be pulled: check its name and the registry",
}


def hindrance(has: Belongings) -> Hindrance | None:
    """Return what keeps a machine from starting; None where it is on its way."""
    return ignored(has) or _no_room(has) or _lost(has) or _unbound(has) or _failing(has)


def ignored(has: Belongings) -> Hindrance | None:
    """Return what to say of a machine that KubeVirt does not act on at all."""
    if has.machine is None or has.unheeded < SLOW:
        return None
    return Hindrance(
        "KubeVirtApiError",
        f"KubeVirt does not act on VirtualMachine {has.machine['metadata']['name']}: see whether "
        "virt-controller runs (kubectl get pods -n kubevirt -l kubevirt.io=virt-controller)",
    )


def is_pending(claim: Object) -> bool:
    """Say whether a claim has no volume."""
    return (claim.get("status") or {}).get("phase") != "Bound"


def _no_room(has: Belongings) -> Hindrance | None:
    # KubeVirt passes it on, but may fail to for ever where the scheduler was faster than it.
    scheduled = condition(has.instance, "PodScheduled") or condition(has.unplaced, "PodScheduled")
    if _state(has.machine) != UNSCHEDULABLE and scheduled.get("reason") != "Unschedulable":
        return None
    said = scheduled.get("message") or condition(has.machine, "Ready").get("message")
    if said and ABOUT_CLAIMS in said and any(map(is_pending, has.claims)):
        return None
    why = f": {said}" if said else ""
    return Hindrance(
        "InsufficientResources",
        f"no node of the cluster can run it{why}; add nodes or ask for less",
    )


def _lost(has: Belongings) -> Hindrance | None:
    for claim in has.claims:
        if (claim.get("status") or {}).get("phase") == "Lost":
            name = claim["metadata"]["name"]
            return Hindrance(
                "PVCLost",
                f"the volume behind PersistentVolumeClaim {name} is gone: restore it, or delete "
                "the claim to have an empty disk",
            )
    return None


def _unbound(has: Belongings) -> Hindrance | None:
    late = [claim for claim in has.claims if is_pending(claim) and has.at - _created(claim) >= SLOW]
    # A cluster that binds claims of others comes to these in their turn.
    busy = has.unbound < SLOW and not any(has.at - _created(each) >= OWN_TURN for each in late)
    if not late or busy:
        return None
    names = ", ".join(claim["metadata"]["name"] for claim in late)
    classes = sorted({claim["spec"].get("storageClassName") or "" for claim in late} - {""})
    see = f" and whether StorageClass {', '.join(classes)} can provide volumes" if classes else ""
    return Hindrance(
        "PVCPending",
        f"PersistentVolumeClaim {names} is not bound: see what kubectl describe pvc says{see}",
    )


def _failing(has: Belongings) -> Hindrance | None:
    vm = has.machine
    state, said = _state(vm), condition(vm, "Synchronized")
    cause = said.get("message") if said.get("status") == "False" else None
    if state == CRASHING:
        cause = cause or has.last_words  # between two tries there is no guest that could say it
    if state in FAILING:
        because = f" ({cause})" if cause else ""
        return Hindrance("VMFailed", f"{state}{because}: {FAILING[state]}")
    failure = condition(vm, "Failure")
    if failure.get("status") == "True":
        why = failure.get("message") or failure.get("reason") or "it does not say why"
        return Hindrance("VMFailed", f"KubeVirt cannot start it: {why}")
    return None


def _state(vm: Object | None) -> str:
    """Return what KubeVirt calls the state of a VirtualMachine."""
    return str(((vm or {}).get("status") or {}).get("printableStatus", ""))


def _created(obj: Object) -> datetime:
    return datetime.fromisoformat(obj["metadata"]["creationTimestamp"])
