"""Reads how a Node of the cluster is marked, for a Host that is one."""

from novacron.core.errors import Rejected, Unreachable
from novacron.core.host import NodeMarks, Taint
from novacron.runtime.client import Client
from novacron.runtime.errors import ApiError, NotFound
from novacron.runtime.resource import Resource

__all__ = ["node_marks"]

NODES = Resource("", "v1", "nodes", "Node", namespaced=False)


async def node_marks(client: Client, name: str) -> NodeMarks:
    """Return the labels and taints of a node; raise when there is none, or nobody can tell."""
    try:
        node = await client.get(NODES, name)
    except NotFound as error:
        raise Rejected(f"there is no Node {name}", reason="NodeNotFound") from error
    except ApiError as error:
        raise Unreachable(
            f"Node {name} cannot be read: {error.message}", reason="NodeUnreadable"
        ) from error
    taints = (node.get("spec") or {}).get("taints") or ()
    return NodeMarks(
        node["metadata"].get("labels") or {},
        tuple(Taint(each["key"], each["effect"], each.get("value") or "") for each in taints),
    )
