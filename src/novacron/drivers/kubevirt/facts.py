"""What a cluster has, as one host that machines can be placed on."""

from typing import Any

from novacron.core.host import HostFacts
from novacron.core.machine import Resources
from novacron.core.quantity import mib, parse_quantity
from novacron.drivers.kubevirt.cluster import Cluster
from novacron.drivers.kubevirt.names import KUBEVIRTS, NODES

__all__ = ["facts_of"]

Object = dict[str, Any]

# Nodes on which KubeVirt can start machines.
SCHEDULABLE = "kubevirt.io/schedulable"
# Storage of a cluster has no end that anybody could tell: its classes say no when it is full.
DISK_MIB = 2**40


async def facts_of(cluster: Cluster) -> HostFacts:
    """Return what the nodes that run machines have together."""
    nodes = [each for each in await cluster.client.list(NODES) if _runs_machines(each)]
    found = await cluster.client.list(KUBEVIRTS)
    version = next(
        (each.get("status", {}).get("observedKubeVirtVersion", "") for each in found), ""
    )
    return HostFacts(
        name=cluster.name,
        capacity=Resources(
            sum(int(parse_quantity(_allocatable(node, "cpu"))) for node in nodes),
            sum(mib(_allocatable(node, "memory")) for node in nodes),
            DISK_MIB,
        ),
        version=version,
        versions={"KubeVirt": version} if version else {},
    )


def _runs_machines(node: Object) -> bool:
    labels = node["metadata"].get("labels") or {}
    return labels.get(SCHEDULABLE) == "true" and not node["spec"].get("unschedulable")


def _allocatable(node: Object, what: str) -> str:
    found: str = (node["status"].get("allocatable") or {}).get(what, "0")
    return found
