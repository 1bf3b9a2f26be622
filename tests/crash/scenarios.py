"""What a user does to machines while the operator dies: every controller adds its scenarios here.

A scenario begins with machines as ``before`` leaves them, does one thing to each, and ends when
``settled`` holds of the object (None when it is gone).
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from machines import condition
from novacron.core.quantity import parse_quantity

Object = dict[str, Any]

__all__ = [
    "CHANGED_SNAPSHOTS",
    "REAL_MOVES",
    "REAL_SCENARIOS",
    "SCENARIOS",
    "Scenario",
    "has_gone_back",
    "snapshots",
    "under_way",
]


def running(obj: Object | None) -> bool:
    """The machine runs as its spec says now."""
    return (
        obj is not None
        and condition(obj, "Ready").get("status") == "True"
        and obj["status"]["observedGeneration"] == obj["metadata"]["generation"]
        and _as_asked(obj)
    )


def stopped(obj: Object | None) -> bool:
    """The machine is stopped, as asked."""
    return obj is not None and condition(obj, "Ready").get("reason") == "Stopped"


def moved(obj: Object | None) -> bool:
    """The machine runs on the other host, and nothing is asked of it any more."""
    return (
        running(obj)
        and obj is not None
        and not any("move" in note or "migrate" in note for note in obj["metadata"]["annotations"])
        and obj["status"].get("migration", {}).get("result") == "Succeeded"
    )


def moved_with_one(obj: Object | None) -> bool:
    """The machine runs on the other host, with its snapshot."""
    return moved(obj) and snapshots(obj) == {"one"}


def began_anew(obj: Object | None) -> bool:
    """The machine runs on the other host, because its own is off."""
    return (
        running(obj)
        and obj is not None
        and obj["status"].get("migration", {}).get("reason") == "HostLost"
        and "novacron.io/move" not in obj["metadata"]["annotations"]
    )


def under_way(obj: Object | None) -> bool:
    """The machine is being sent to the other host."""
    return (
        obj is not None
        and obj["status"]["phase"] == "Migrating"
        and obj["status"].get("migration", {}).get("transferredBytes", 0) > 0
    )


def stayed(obj: Object | None) -> bool:
    """The machine runs on where it was, and nothing is asked of it any more."""
    return (
        running(obj)
        and obj is not None
        and not any("move" in note or "migrate" in note for note in obj["metadata"]["annotations"])
        and obj["status"].get("migration", {}).get("result") == "Cancelled"
    )


def stopped_as_asked(obj: Object | None) -> bool:
    """The machine is stopped, and set up as its spec says now."""
    return (
        obj is not None
        and stopped(obj)
        and obj["status"]["observedGeneration"] == obj["metadata"]["generation"]
        and _as_asked(obj)
    )


def gone(obj: Object | None) -> bool:
    """Nothing of it is left."""
    return obj is None


def snapshots(obj: Object | None) -> set[str]:
    """Return the names of a machine's snapshots."""
    return {each["name"] for each in ((obj or {}).get("status") or {}).get("snapshots") or ()}


def has_gone_back(obj: Object) -> bool:
    """It went back to one snapshot, has another, and a third is gone."""
    request = (obj["status"].get("restore") or {}).get("request")
    return request == "r1" and snapshots(obj) == {"before", "new"}


def went_back(obj: Object | None) -> bool:
    """It went back, and it runs."""
    return obj is not None and running(obj) and has_gone_back(obj)


def taken_at_rest(obj: Object | None) -> bool:
    """It runs, and has one snapshot, for which its guest's file systems were at rest."""
    taken = ((obj or {}).get("status") or {}).get("snapshots") or ()
    return running(obj) and [each.get("quiesced") for each in taken] == [True]


def _as_asked(obj: Object) -> bool:
    asked = obj["spec"]["template"]["spec"]["resources"]
    has = obj["status"].get("resources") or {}
    volumes = obj["spec"]["template"]["spec"].get("volumes") or []
    return (
        bool(has)
        and all(
            parse_quantity(has[name]["available"]) == parse_quantity(str(asked[name]))
            for name in ("cpu", "memory", "disk")
        )
        and _attached(obj) == {each["name"]: parse_quantity(each["size"]) for each in volumes}
    )


def _attached(obj: Object) -> Object:
    return {
        each["name"]: parse_quantity(each["size"])
        for each in obj["status"].get("volumes") or []
        if each["state"] == "Attached"
    }


@dataclass(frozen=True, slots=True)
class Scenario:
    """One thing a user does; ``patch`` of None is a deletion.

    ``volumes`` are those the machine has in the beginning, ``kept`` names those that are to be
    there when it is gone. Where it begins with a move under way, that is what ``moving`` asks for.
    ``with_memory`` is of the snapshots it has in the beginning. A guest ``with_agent`` boots, and
    answers before it is ready. Where ``host_lost``, nobody does anything but switch its host off,
    and say so; where ``host_left``, somebody has its host drained.
    """

    name: str
    settled: Callable[[Object | None], bool]
    exists_before: bool = True
    running_before: bool = True
    patch: Object | None = field(default_factory=dict)
    simulation: Object = field(default_factory=dict)
    second_host: bool = False
    with_device: bool = False
    template: Object = field(default_factory=dict)
    volumes: tuple[Object, ...] = ()
    kept: tuple[str, ...] = ()
    snapshots_before: tuple[str, ...] = ()
    with_memory: bool = False
    with_agent: bool = False
    moving: Object = field(default_factory=dict)
    host_lost: bool = False
    host_left: bool = False

    def begins(self, obj: Object | None) -> bool:
        """Say whether a machine is where the scenario begins."""
        ready = running(obj) if self.running_before else stopped(obj)
        return ready and snapshots(obj) == set(self.snapshots_before)


DATA = {"name": "data", "size": "64Mi", "reclaimPolicy": "Retain"}
SCRATCH = {"name": "scratch", "size": "32Mi", "reclaimPolicy": "Delete"}
MORE_VOLUMES = {"spec": {"template": {"spec": {"volumes": [{**DATA, "size": "96Mi"}, SCRATCH]}}}}
FEWER_VOLUMES = {"spec": {"template": {"spec": {"volumes": [DATA]}}}}
LARGER = {"spec": {"template": {"spec": {"resources": {"cpu": 3, "disk": "512Mi"}}}}}
MORE_MEMORY = {"spec": {"template": {"spec": {"resources": {"cpu": 2, "memory": "600Mi"}}}}}
RESOURCES = {"spec": {"template": {"spec": {"resources": {"cpu": 3, "memory": "2Gi"}}}}}
MOVE = {"metadata": {"annotations": {"novacron.io/migrate-to": "any"}}}
STOPPED_MOVE = {
    "spec": {"migrationPolicy": {"allowLiveMigration": False}},
    "metadata": {
        "annotations": {
            "novacron.io/migrate-to": "any",
            "novacron.io/migrate-stop-allowed": "true",
        }
    },
}
HOOK = {"exec": {"command": ["sleep", "1"], "timeoutSeconds": 20}}
ANSWERED = {"exec": {"command": ["true"]}}
HOOKS = {"lifecycle": {"preStart": HOOK, "preStop": HOOK}}
SLOWLY = {"delays": dict.fromkeys(("create", "start", "stop", "resize", "delete", "move"), "300ms")}
GPUS = {
    "devices": [
        {"address": f"0000:3b:00.{n}", "type": "gpu", "vendor": "nvidia", "model": f"model-{n}"}
        for n in range(64)
    ]
}

# Restored first, then one discarded and one taken.
CHANGED_SNAPSHOTS = {
    "spec": {
        "snapshots": [{"name": "gone", "discard": True}, {"name": "new"}],
        "restore": {"snapshot": "before", "request": "r1"},
    }
}
OF_SNAPSHOTS = Scenario(
    "snapshots", went_back, patch=CHANGED_SNAPSHOTS, snapshots_before=("before", "gone")
)
REMEMBERED = [{"name": "gone", "discard": True}, {"name": "new", "memory": True}]
OF_MEMORY = replace(
    OF_SNAPSHOTS,
    name="snapshots with memory",
    patch={"spec": CHANGED_SNAPSHOTS["spec"] | {"snapshots": REMEMBERED}},
    with_memory=True,
)

SCENARIOS = (
    Scenario("create", running, exists_before=False),
    Scenario("create slowly", running, exists_before=False, simulation=SLOWLY),
    Scenario("create with device", running, exists_before=False, simulation=GPUS, with_device=True),
    Scenario("resize", running, patch=RESOURCES),
    Scenario("stop", stopped, patch={"spec": {"running": False}}),
    Scenario("start", running, running_before=False, patch={"spec": {"running": True}}),
    Scenario("stop slowly", stopped, patch={"spec": {"running": False}}, simulation=SLOWLY),
    Scenario("delete", gone, patch=None),
    Scenario("delete slowly", gone, patch=None, simulation=SLOWLY),
    Scenario("move", moved, patch=MOVE, second_host=True),
    Scenario("stop and move", moved, patch=STOPPED_MOVE, second_host=True),
    Scenario("move slowly", moved, patch=MOVE, simulation=SLOWLY, second_host=True),
    Scenario(
        "move with volumes",
        moved,
        patch=MOVE,
        volumes=(DATA, SCRATCH),
        kept=("data",),
        second_host=True,
    ),
    Scenario("leave a drained host", moved, host_left=True, second_host=True),
    Scenario("begin anew", began_anew, host_lost=True, second_host=True),
    Scenario("begin anew slowly", began_anew, simulation=SLOWLY, host_lost=True, second_host=True),
    OF_SNAPSHOTS,
    Scenario(
        "start with a hook",
        running,
        running_before=False,
        patch={"spec": {"running": True}},
        template=HOOKS,
    ),
    Scenario("stop with a hook", stopped, patch={"spec": {"running": False}}, template=HOOKS),
    Scenario("delete with a hook", gone, patch=None, template=HOOKS),
    Scenario("change volumes", running, patch=MORE_VOLUMES, volumes=(DATA,), kept=("data",)),
    Scenario("delete with volumes", gone, patch=None, volumes=(DATA, SCRATCH), kept=("data",)),
)

# With real guests, which take real time.
REAL_SCENARIOS = (
    Scenario("create", running, exists_before=False),
    Scenario("create from a new image", running, exists_before=False),
    Scenario("create from a new image to convert", running, exists_before=False),
    Scenario("grow", running, patch=LARGER),
    Scenario("restart", running, patch=MORE_MEMORY),
    Scenario("stop", stopped, patch={"spec": {"running": False}}),
    Scenario("start", running, running_before=False, patch={"spec": {"running": True}}),
    Scenario("delete", gone, patch=None),
    OF_SNAPSHOTS,
    OF_MEMORY,
    Scenario(
        "snapshot at rest",
        taken_at_rest,
        patch={"spec": {"snapshots": [{"name": "new"}]}},
        template={"image": {"source": "builtin://tiny"}, "lifecycle": {"preStart": ANSWERED}},
        with_agent=True,
    ),
    Scenario(
        "create with volumes",
        running,
        exists_before=False,
        volumes=(DATA, SCRATCH),
        kept=("data",),
    ),
    Scenario("change volumes", running, patch=MORE_VOLUMES, volumes=(DATA,), kept=("data",)),
    Scenario(
        "take a volume off",
        stopped_as_asked,
        running_before=False,
        patch=FEWER_VOLUMES,
        volumes=(DATA, SCRATCH),
        kept=("data", "scratch"),
    ),
    Scenario("delete with volumes", gone, patch=None, volumes=(DATA, SCRATCH), kept=("data",)),
)


def within(bandwidth: str) -> Object:
    """Return how a move takes a second or two, so that it can be killed in the midst of it."""
    return {"spec": {"migrationPolicy": {"bandwidth": bandwidth, "compression": False}}}


def move_within(bandwidth: str) -> Object:
    """Return a move that takes so long."""
    return within(bandwidth) | MOVE


# From one real host to another while the guest runs: 64 MiB of disk, or memory with nothing in it.
REAL_MOVES = (
    Scenario("move with disks", moved, patch=move_within("320Mbps"), second_host=True),
    Scenario("move", moved, patch=move_within("1Mi"), second_host=True),
    Scenario(
        "move with volumes",
        moved,
        patch=move_within("1Mi"),
        volumes=(DATA, SCRATCH),
        kept=("data",),
        second_host=True,
    ),
    Scenario(
        "move with disks and volumes",
        moved,
        patch=move_within("640Mbps"),
        volumes=(DATA, SCRATCH),
        kept=("data",),
        second_host=True,
    ),
    Scenario("leave a drained host", moved, patch=within("1Mi"), host_left=True, second_host=True),
    Scenario(
        "move with a snapshot",
        moved_with_one,
        patch=move_within("1Mi"),
        snapshots_before=("one",),
        second_host=True,
    ),
    Scenario("stop and move", moved, patch=STOPPED_MOVE, second_host=True),
    Scenario(
        "stop and move disks with a snapshot",
        moved_with_one,
        patch=STOPPED_MOVE,
        snapshots_before=("one",),
        with_memory=True,
        second_host=True,
    ),
    # One that would take ten minutes.
    Scenario(
        "cancel a move with large disks",
        stayed,
        patch={"metadata": {"annotations": {"novacron.io/migrate-cancel": "true"}}},
        moving=move_within("1Mi"),
        second_host=True,
    ),
    Scenario(
        "delete amid a move with large disks",
        gone,
        patch=None,
        moving=move_within("3Mi"),
        volumes=(DATA, SCRATCH),
        kept=("data",),
        second_host=True,
    ),
)
