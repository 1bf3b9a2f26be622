"""The nodes of a cluster, as far as machines care: which of them are dead, and known to be off."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from novacron.core.host import OUT_OF_SERVICE
from novacron.core.machine import Hindrance

__all__ = ["Node", "node_of", "unknown", "why_unsure"]

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Node:
    """Whether a node answers; ``fenced`` says that somebody made sure that it is off."""

    ready: bool = True
    fenced: bool = False


def node_of(obj: Object | None) -> Node:
    """Return how a node is; one that is gone does not answer."""
    if obj is None:
        return Node(ready=False, fenced=True)
    conditions: Iterable[Object] = (obj.get("status") or {}).get("conditions") or ()
    ready = next((each["status"] for each in conditions if each["type"] == "Ready"), "True")
    taints: Iterable[Object] = (obj.get("spec") or {}).get("taints") or ()
    fenced = any(taint["key"] == OUT_OF_SERVICE for taint in taints)
    return Node(ready == "True", fenced)


def unknown(name: str | None) -> Node | None:
    """Know of no node, for those who look at objects alone."""
    del name
    return None


def why_unsure(name: str | None, node: Node | None) -> Hindrance | None:
    """Return why nobody can tell how a machine on a node is; None where the node answers."""
    if name is None or node is None or node.ready:
        return None
    if node.fenced:
        message = f"node {name} is off, and the cluster starts the machine on another one"
        return Hindrance("NodeOutOfService", message)
    return Hindrance(
        "NodeNotReady",
        f"node {name} does not answer, and the machine may still run there: bring the node back, "
        f"or make sure that it is off and then say so with `kubectl taint node {name} "
        f"{OUT_OF_SERVICE}=nodeshutdown:NoExecute`, which has it started on another node",
    )
