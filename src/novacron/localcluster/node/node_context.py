"""What all pods of a node share."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from novacron.localcluster.node.image import OwnImage
from novacron.localcluster.node.network import Network
from novacron.localcluster.node.records import PodRecord, pod_records
from novacron.localcluster.node.relay import Connect
from novacron.localcluster.node.sources import Sources
from novacron.runtime.cache import Cache
from novacron.runtime.client import Client
from novacron.runtime.events import Events
from novacron.runtime.resource import Object, Resource

__all__ = ["PODS", "WRITER", "NodeContext"]

PODS = Resource("", "v1", "pods", "Pod")
WRITER = "node"


@dataclass(frozen=True, slots=True)
class NodeContext:
    """One node's parts, as its pods use them."""

    directory: Path
    client: Client
    cache: Cache
    events: Events
    sources: Sources
    image: OwnImage
    network: Network
    allocatable: Mapping[str, str]
    connect: Connect
    api_port: int

    @property
    def address(self) -> str:
        """Return the address of the machine itself among the pods."""
        return str(self.network.subnet.gateway.ip)

    def record(self, pod: Object) -> PodRecord:
        """Return a pod's record, made unless it is there."""
        metadata = pod["metadata"]
        directory = self.directory / "pods" / metadata["uid"]
        known = PodRecord.read(directory)
        return known or PodRecord(directory, metadata["namespace"], metadata["name"]).write()

    def free_address(self) -> str:
        """Return an address that no recorded pod has."""
        taken = (record.address for record in pod_records(self.directory) if record.address)
        return str(self.network.subnet.free(taken).ip)
