"""What a user does to Machines of the Viti Stack while the operator dies."""

from typing import Any

from crash.scenarios import CHANGED_SNAPSHOTS, Scenario, has_gone_back, snapshots
from machines import condition
from snapshot_storage import SNAPSHOT_CLASS

__all__ = ["MACHINE_SCENARIOS", "SPEC", "begins", "disks_of", "gone", "running"]

Object = dict[str, Any]

MIGRATE_TO, RECORD = "novacron.io/migrate-to", "novacron.io/move"


def _disk(name: str, **more: str) -> Object:
    """Return a disk that a machine can move with."""
    return {"name": name, "accessMode": "ReadWriteMany", **more}


DISKS = [_disk("root"), _disk("data", size="1Gi", storageClass="fast-ssd")]
SPEC = {
    "template": "small",
    "disks": DISKS,
    "networks": [{"name": "eth0", "networkName": "crash-network"}],
    "cloudInit": {"userData": "#cloud-config\n"},
}


def disks_of(obj: Object) -> set[str]:
    """Return the names of the disks that a Machine is to have."""
    return {each["name"] for each in obj["spec"]["disks"]}


def running(obj: Object | None) -> bool:
    """The Machine runs as its spec says now, and nothing of that is still to come."""
    if obj is None or condition(obj, "Ready").get("status") != "True":
        return False
    status = obj["status"]
    # KubeVirt plugs a disk in before its VirtualMachine says as what.
    there = (each for each in status["disks"] if each.get("type"))
    attached = {each["name"] for each in there if each.get("state") == "Attached"}
    return (
        status["phase"] == "Running"
        and status["observedGeneration"] == obj["metadata"]["generation"]
        and status["cpus"] == (obj["spec"].get("resources") or {}).get("cpu", {}).get("cores", 1)
        and attached == disks_of(obj)
        and not condition(obj, "ChangePending")
    )


def stopped(obj: Object | None) -> bool:
    """The Machine is stopped, as asked."""
    return obj is not None and (obj.get("status") or {}).get("phase") == "Stopped"


def moved(obj: Object | None) -> bool:
    """The Machine runs on another node, and nothing is asked of it any more."""
    if obj is None or not running(obj):
        return False
    notes = obj["metadata"].get("annotations") or {}
    move = obj["status"].get("migration") or {}
    return (
        move.get("result") == "Succeeded"
        and move["targetNode"] == obj["status"]["nodeName"]
        and not {MIGRATE_TO, RECORD} & set(notes)
    )


def grown(obj: Object | None) -> bool:
    """The Machine has its CPUs, by a move of KubeVirt's own, which has ended."""
    return running(obj) and (obj or {})["status"].get("migration", {}).get("result") == "Succeeded"


def went_back(obj: Object | None) -> bool:
    """The Machine went back to a snapshot, and it runs."""
    return obj is not None and running(obj) and has_gone_back(obj)


def gone(obj: Object | None) -> bool:
    """Nothing of it is left."""
    return obj is None


def begins(scenario: Scenario, obj: Object | None) -> bool:
    """Say whether a Machine is where the scenario begins."""
    ready = running(obj) if scenario.running_before else stopped(obj)
    return ready and snapshots(obj) == set(scenario.snapshots_before)


MACHINE_SCENARIOS = (
    Scenario("stop", stopped, patch={"spec": {"running": False}}),
    Scenario("create", running, exists_before=False),
    Scenario(
        "create from an image",
        running,
        exists_before=False,
        template={"image": {"source": "https://images.example.com/debian.qcow2"}},
    ),
    Scenario("start", running, running_before=False, patch={"spec": {"running": True}}),
    Scenario("resize", grown, patch={"spec": {"resources": {"cpu": {"cores": 2}}}}),
    Scenario("hotplug", running, patch={"spec": {"disks": [*DISKS, _disk("more", size="1Gi")]}}),
    Scenario("unplug", running, patch={"spec": {"disks": DISKS[:1]}}),
    Scenario("move", moved, patch={"metadata": {"annotations": {MIGRATE_TO: "any"}}}),
    Scenario(
        "snapshots",
        went_back,
        patch=CHANGED_SNAPSHOTS,
        template={"disks": [{**each, "storageClass": SNAPSHOT_CLASS} for each in DISKS]},
        snapshots_before=("before", "gone"),
    ),
    Scenario("delete", gone, patch=None),
)
