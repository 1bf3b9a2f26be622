"""What a user does to machines while the operator dies: every controller adds its scenarios here.

A scenario begins with machines as ``before`` leaves them, does one thing to each, and ends when
``settled`` holds of the object (None when it is gone).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from machines import condition
from novacron.core.quantity import parse_quantity

Object = dict[str, Any]

__all__ = ["REAL_SCENARIOS", "SCENARIOS", "Scenario"]


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


def gone(obj: Object | None) -> bool:
    """Nothing of it is left."""
    return obj is None


def _as_asked(obj: Object) -> bool:
    asked = obj["spec"]["template"]["spec"]["resources"]
    has = obj["status"].get("resources") or {}
    return bool(has) and all(
        parse_quantity(has[name]["available"]) == parse_quantity(str(asked[name]))
        for name in ("cpu", "memory", "disk")
    )


@dataclass(frozen=True, slots=True)
class Scenario:
    """One thing a user does; ``patch`` of None is a deletion."""

    name: str
    settled: Callable[[Object | None], bool]
    exists_before: bool = True
    running_before: bool = True
    patch: Object | None = field(default_factory=dict)
    simulation: Object = field(default_factory=dict)
    second_host: bool = False
    full: bool = False


LARGER = {"spec": {"template": {"spec": {"resources": {"cpu": 3, "disk": "512Mi"}}}}}
MORE_MEMORY = {"spec": {"template": {"spec": {"resources": {"cpu": 2, "memory": "600Mi"}}}}}
RESOURCES = {"spec": {"template": {"spec": {"resources": {"cpu": 3, "memory": "2Gi"}}}}}
SLOWLY = {"delays": dict.fromkeys(("create", "start", "stop", "resize", "delete", "move"), "300ms")}
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

SCENARIOS = (
    Scenario("create", running, exists_before=False),
    Scenario("create slowly", running, exists_before=False, simulation=SLOWLY),
    Scenario("resize", running, patch=RESOURCES),
    Scenario("stop", stopped, patch={"spec": {"running": False}}),
    Scenario("start", running, running_before=False, patch={"spec": {"running": True}}),
    Scenario("stop slowly", stopped, patch={"spec": {"running": False}}, simulation=SLOWLY),
    Scenario("delete", gone, patch=None),
    Scenario("delete slowly", gone, patch=None, simulation=SLOWLY),
    Scenario("move", moved, patch=MOVE, second_host=True, full=True),
    Scenario("stop and move", moved, patch=STOPPED_MOVE, second_host=True, full=True),
    Scenario("move slowly", moved, patch=MOVE, simulation=SLOWLY, second_host=True),
)

# With real guests, which take real time; the first is part of the everyday tests.
REAL_SCENARIOS = (
    Scenario("create", running, exists_before=False),
    Scenario("create from a new image", running, exists_before=False),
    Scenario("grow", running, patch=LARGER),
    Scenario("restart", running, patch=MORE_MEMORY),
    Scenario("stop", stopped, patch={"spec": {"running": False}}),
    Scenario("start", running, running_before=False, patch={"spec": {"running": True}}),
    Scenario("delete", gone, patch=None),
)
