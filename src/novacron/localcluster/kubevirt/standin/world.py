"""What the stand-in sees of the cluster: one watched copy of each kind, shared by its parts."""

import asyncio
import zlib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import IPv4Network

import orjson

from novacron.localcluster.kubevirt.names import INSTANCES, MIGRATIONS
from novacron.localcluster.kubevirt.standin.wishes import held
from novacron.runtime.cache import Cache, Change
from novacron.runtime.client import Client
from novacron.runtime.errors import Conflict, NotFound
from novacron.runtime.reflector import Reflector
from novacron.runtime.request import Request
from novacron.runtime.resource import Key, Object, Resource

__all__ = [
    "CLAIMS",
    "CLASSES",
    "DATA_VOLUMES",
    "NODES",
    "PODS",
    "VOLUMES",
    "World",
    "now",
    "vanish",
]

NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
PODS = Resource("", "v1", "pods", "Pod")
CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
DATA_VOLUMES = Resource("cdi.kubevirt.io", "v1beta1", "datavolumes", "DataVolume")
# Of pods; nothing can be reached there.
NETWORK = IPv4Network("10.128.0.0/12")
LAUNCHED_FOR = "kubevirt.io/created-by"


def now() -> str:
    """Return the time as Kubernetes writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(slots=True)
class Addresses:
    """Addresses of pods: no two at a time, and the same again for the same pod."""

    _held: dict[Key, str] = field(default_factory=dict)

    def noted(self, change: Change) -> None:
        """See which addresses are in use."""
        address = ((change.object or {}).get("status") or {}).get("podIP")
        if address:
            self._held[change.key] = address
        else:
            self._held.pop(change.key, None)

    def of(self, key: Key, uid: str) -> str:
        """Return the pod's address."""
        if key in self._held:
            return self._held[key]
        taken, place = set(self._held.values()), zlib.crc32(uid.encode())
        while (address := str(NETWORK[place % NETWORK.num_addresses])) in taken:
            place += 1
        self._held[key] = address
        return address


@dataclass(slots=True)
class World:
    """The cluster as it was last seen, and two voices: the kubelets' own, and virt-handler's."""

    client: Client
    handler: Client
    names: tuple[str, ...]
    nodes: Cache = field(default_factory=lambda: Cache(NODES))
    pods: Cache = field(default_factory=lambda: Cache(PODS))
    instances: Cache = field(default_factory=lambda: Cache(INSTANCES))
    migrations: Cache = field(default_factory=lambda: Cache(MIGRATIONS))
    claims: Cache = field(default_factory=lambda: Cache(CLAIMS))
    volumes: Cache = field(default_factory=lambda: Cache(VOLUMES))
    classes: Cache = field(default_factory=lambda: Cache(CLASSES))
    addresses: Addresses = field(default_factory=Addresses)
    # None where nobody imports images.
    imports: Cache | None = None
    _launched: dict[str, set[Key]] = field(default_factory=dict)
    _owners: dict[Key, str] = field(default_factory=dict)

    @property
    def caches(self) -> tuple[Cache, ...]:
        """Return the copies of all kinds."""
        return (
            *(self.nodes, self.pods, self.instances, self.migrations),
            *(self.claims, self.volumes, self.classes),
            *([] if self.imports is None else [self.imports]),
        )

    async def follow(self) -> None:
        """Keep all copies current, for ever."""
        self.pods.subscribe(self._pod_noted)
        async with asyncio.TaskGroup() as group:
            for cache in self.caches:
                group.create_task(Reflector(self.client, cache).run())

    def alive(self, node: str | None) -> bool:
        """Say whether this is a node of ours that is not to play dead."""
        return node in self.names and not held(self.nodes.get(Key("", str(node))))

    def migration(self, uid: str | None) -> Object | None:
        """Return the migration with this identity."""
        found = self.migrations.objects()
        return next((each for each in found if each["metadata"]["uid"] == uid), None)

    def pods_of(self, instance: Object) -> list[Object]:
        """Return the pods that belong to an instance."""
        keys = self._launched.get(instance["metadata"]["uid"], ())
        return [pod for key in sorted(keys) if (pod := self.pods.get(key))]

    def _pod_noted(self, change: Change) -> None:
        """See whose pods there are: an instance is looked at often, and pods are many."""
        self.addresses.noted(change)
        labels = ((change.object or {}).get("metadata") or {}).get("labels") or {}
        uid = labels.get(LAUNCHED_FOR)
        if uid:
            self._launched.setdefault(uid, set()).add(change.key)
            self._owners[change.key] = uid
        elif before := self._owners.pop(change.key, None):
            self._launched[before].discard(change.key)
            if not self._launched[before]:
                del self._launched[before]


async def vanish(client: Client, resource: Resource, obj: Object) -> None:
    """Delete an object at once, and only this one."""
    metadata = obj["metadata"]
    path = resource.path(metadata.get("namespace"), metadata["name"])
    body = {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}}
    try:
        await client.send(Request("delete", "DELETE", path, body=orjson.dumps(body)))
    except (NotFound, Conflict):
        return
