"""The caches and the ledger of one process, and an API server that takes whatever is written."""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from machines import host, virtual_machine
from novacron.app.registry import HOST_KIND
from novacron.controllers.drivers import DriverPool
from novacron.controllers.host import HostController
from novacron.controllers.kept import VolumeHolders
from novacron.controllers.ledger import Ledger
from novacron.controllers.mover import Mover
from novacron.controllers.placement import Placer
from novacron.core.host import NodeMarks
from novacron.families.novacron.translate import VirtualMachineKind
from novacron.runtime.cache import Cache
from novacron.runtime.client import Client
from novacron.runtime.events import Events
from novacron.runtime.queue import Queue
from novacron.runtime.resource import Key, Object, Resource
from novacron.runtime.writer import Writer

__all__ = ["Office"]

HOSTS = Resource("novacron.io", "v1alpha1", "hosts", "Host", namespaced=False)
MACHINES = Resource("novacron.io", "v1alpha1", "virtualmachines", "VirtualMachine")
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
ROOM = {"cpu": "8", "memory": "64Gi", "disk": "1Ti"}


@dataclass
class Paper:
    """The calls of a client that writers need."""

    version: int = 0

    async def replace(self, resource: Resource, body: Object, subresource: str = "") -> Object:
        """Take an object as it is."""
        del resource, subresource
        return self.numbered(body)

    async def patch(self, resource: Resource, name: str, body: Object, namespace: str) -> Object:
        """Nothing here patches an object that is not to be let go."""
        raise AssertionError(f"{resource}/{name} of {namespace!r} is let go: {body}")

    def numbered(self, body: Object) -> Object:
        """Return an object with a version that nobody has seen yet."""
        self.version += 1
        metadata = {"generation": 1, **body["metadata"], "resourceVersion": str(self.version)}
        return {**body, "metadata": metadata}


@dataclass
class Office:
    """Hosts and machines that a test writes down, and who decides about them."""

    paper: Paper = field(default_factory=Paper)
    now: datetime = NOON

    def __post_init__(self) -> None:
        self.ledger = Ledger(HOST_KIND)
        self.hosts, self.machines = Cache(HOSTS), Cache(MACHINES)
        self.ledger.follow_hosts(self.hosts)
        self.kind = VirtualMachineKind()
        self.ledger.follow_machines(self.machines, self.kind)
        self.events = Events(self._client, "novacron")
        writer = Writer(self._client, self.machines, "moves")
        clock = {"now": lambda: self.now, "queue": Queue()}
        grace = timedelta(minutes=1)
        self.mover = Mover(self.kind, writer, self.ledger, self.events, grace=grace, **clock)  # type: ignore[arg-type]
        placing = Writer(self._client, self.machines, "placement")
        self.placer = Placer(self.kind, placing, self.ledger, self.events, locate=_nowhere, **clock)  # type: ignore[arg-type]
        self.host_controller = HostController(
            HOST_KIND,
            Writer(self._client, self.hosts, "host"),
            DriverPool(HOST_KIND, {}),
            self.ledger,
            self.events,
            timedelta(minutes=1),
            lambda: self.now,
            Queue(),
            _unmarked,
            VolumeHolders(),
        )

    @property
    def _client(self) -> Client:
        return cast("Client", self.paper)

    def add_host(
        self,
        name: str,
        *,
        answers: bool = True,
        deleting: bool = False,
        says: Object | None = None,
        **spec: Any,
    ) -> None:
        """Have a host, which answers or has fallen silent at noon, and ``says`` more of itself."""
        body = host(name, **spec)
        body["metadata"] |= {"uid": name, "finalizers": [HOST_KIND.finalizer]}
        if deleting:
            body["metadata"]["deletionTimestamp"] = "2026-11-15T11:00:00Z"
        ready = {"type": "Ready", "status": "True" if answers else "False", "reason": "Tested"}
        since = {"lastTransitionTime": "2026-11-15T12:00:00Z"}
        status = {"conditions": [ready | since], "allocatable": ROOM, **(says or {})}
        self.hosts.seen(self.paper.numbered({**body, "status": status}))

    def add_machine(self, name: str, on: str, notes: Object, **status: Any) -> None:
        """Have a machine that runs on a host."""
        body = virtual_machine(name, "n")
        body["metadata"] |= {"uid": f"uid-{name}", "annotations": notes}
        ready = {"type": "Ready", "status": "True", "reason": "Running"}
        told = {"nodeName": on, "conditions": [ready], **status}
        self.machines.seen(self.paper.numbered({**body, "status": told}))

    def host(self, name: str) -> Object:
        """Return a host as it is written now."""
        found = self.hosts.get(Key("", name))
        assert found is not None
        return found

    def machine(self, name: str) -> Object:
        """Return a machine as it is written now."""
        found = self.machines.get(Key("n", name))
        assert found is not None
        return found


async def _unmarked(_node: str) -> NodeMarks:
    return NodeMarks()


async def _nowhere(_uid: str, _among: Collection[str] | None) -> None:
    """Nothing exists anywhere that is not recorded."""
