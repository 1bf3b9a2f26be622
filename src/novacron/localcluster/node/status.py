"""What a pod's status says, derived from the states of its containers. Pure.

Nothing here is ever read back to decide what to do next.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from novacron.runtime.resource import Object

__all__ = ["PodFacts", "Running", "State", "Terminated", "View", "Waiting", "pod_status"]


@dataclass(frozen=True, slots=True)
class Waiting:
    """Not running, and why."""

    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Running:
    """Running since a moment."""

    since: str


@dataclass(frozen=True, slots=True)
class Terminated:
    """A run that ended."""

    code: int
    reason: str
    since: str
    until: str
    message: str = ""


State = Waiting | Running | Terminated


@dataclass(frozen=True, slots=True)
class View:
    """One container as it is now; ``last`` is how the run before this one ended."""

    name: str
    image: str
    state: State
    last: Terminated | None = None
    restarts: int = 0
    ready: bool = False
    started: bool = False

    @property
    def ended(self) -> Terminated | None:
        """Return how it ended, also while it waits to be started again."""
        if isinstance(self.state, Terminated):
            return self.state
        return self.last if isinstance(self.state, Waiting) else None


@dataclass(frozen=True, slots=True)
class PodFacts:
    """What the node knows of a pod beside its containers."""

    node_address: str
    image_identity: str
    address: str = ""
    failure: tuple[str, str] | None = None


def pod_status(
    pod: Object, init: Sequence[View], main: Sequence[View], facts: PodFacts, now: str
) -> Object:
    """Return the whole status of a pod; what others wrote into it stays."""
    before = pod.get("status") or {}
    phase = _phase(pod["spec"].get("restartPolicy", "Always"), init, main, facts)
    status: Object = {
        "phase": phase,
        "conditions": _conditions(pod, phase, init, main, facts, now),
        "hostIP": facts.node_address,
        "hostIPs": [{"ip": facts.node_address}],
        "startTime": before.get("startTime") or now,
        "containerStatuses": [_container(pod, view, facts) for view in main],
    }
    if facts.address:
        status |= {"podIP": facts.address, "podIPs": [{"ip": facts.address}]}
    if init:
        status["initContainerStatuses"] = [_container(pod, view, facts) for view in init]
    if facts.failure:
        status |= {"reason": facts.failure[0], "message": facts.failure[1]}
    return status


def _phase(policy: str, init: Sequence[View], main: Sequence[View], facts: PodFacts) -> str:
    if facts.failure or (policy == "Never" and any(_failed(view) for view in init)):
        return "Failed"
    if not _initialized(init) or any(_never_ran(view) for view in main):
        return "Pending"
    if policy == "Always" or not all(isinstance(view.state, Terminated) for view in main):
        return "Running"
    if not any(_failed(view) for view in main):
        return "Succeeded"
    return "Failed" if policy == "Never" else "Running"


def _never_ran(view: View) -> bool:
    return isinstance(view.state, Waiting) and view.last is None


def _failed(view: View) -> bool:
    return isinstance(view.state, Terminated) and view.state.code != 0


def _initialized(init: Sequence[View]) -> bool:
    return all(isinstance(view.state, Terminated) and view.state.code == 0 for view in init)


def _conditions(
    pod: Object,
    phase: str,
    init: Sequence[View],
    main: Sequence[View],
    facts: PodFacts,
    now: str,
) -> list[Object]:
    known = {each["type"]: each for each in (pod.get("status") or {}).get("conditions") or ()}
    ready = phase == "Running" and all(view.ready for view in main)
    unready = _why_not_ready(phase, main)
    gates = [gate["conditionType"] for gate in pod["spec"].get("readinessGates") or ()]
    gated = any(known.get(gate, {}).get("status") != "True" for gate in gates)
    # What stands in the way of each, if anything: a reason and a message.
    obstacles: dict[str, tuple[str, str] | None] = {
        "PodReadyToStartContainers": None if facts.address else ("NoAddressYet", ""),
        "Initialized": None if _initialized(init) else ("ContainersNotInitialized", ""),
        "ContainersReady": None if ready else unready,
        "Ready": (("ReadinessGatesNotReady", "") if gated else None) if ready else unready,
    }
    ours = [_condition(known.get(kind), kind, why, now) for kind, why in obstacles.items()]
    return ours + [each for kind, each in known.items() if kind not in obstacles]


def _why_not_ready(phase: str, main: Sequence[View]) -> tuple[str, str]:
    if phase in ("Succeeded", "Failed"):
        return f"Pod{'Completed' if phase == 'Succeeded' else 'Failed'}", ""
    names = " ".join(view.name for view in main if not view.ready)
    return "ContainersNotReady", f"containers with unready status: [{names}]"


def _condition(
    before: Object | None, kind: str, obstacle: tuple[str, str] | None, now: str
) -> Object:
    status = "False" if obstacle else "True"
    same = before is not None and before.get("status") == status
    since = (before or {}).get("lastTransitionTime") if same else None
    reason, message = obstacle or ("", "")
    return {
        "type": kind,
        "status": status,
        "lastTransitionTime": since or now,
        **_filled(reason=reason, message=message),
    }


def _container(pod: Object, view: View, facts: PodFacts) -> Object:
    began = not _never_ran(view)
    # While it waits for its next run, the last one is the latest there was.
    last = view.restarts if isinstance(view.state, Waiting) else view.restarts - 1
    identity = f"{facts.image_identity.partition(':')[0]}://{pod['metadata']['uid']}/{view.name}"
    result: Object = {
        "name": view.name,
        "image": view.image,
        "imageID": facts.image_identity if began else "",
        "ready": view.ready,
        "started": view.started,
        "restartCount": view.restarts,
        "state": _state(view.state, f"{identity}/{view.restarts}"),
        "lastState": _state(view.last, f"{identity}/{last}") if view.last else {},
    }
    if began:
        result["containerID"] = f"{identity}/{view.restarts}"
    return result


def _state(state: State, identity: str) -> dict[str, Any]:
    if isinstance(state, Waiting):
        return {"waiting": _filled(reason=state.reason, message=state.message)}
    if isinstance(state, Running):
        return {"running": {"startedAt": state.since}}
    return {
        "terminated": {
            "exitCode": state.code,
            "startedAt": state.since,
            "finishedAt": state.until,
            "containerID": identity,
            **_filled(reason=state.reason, message=state.message),
        }
    }


def _filled(**texts: str) -> dict[str, str]:
    return {name: text for name, text in texts.items() if text}
