"""What is in one KubeVirt cluster of ours, kept current by watches.

Only objects that carry a machine's UID are followed, storage classes, and KubeVirt's own settings.
Nobody asks the cluster how a machine is: the cluster tells.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import dataclass, field

from novacron.core.errors import Unreachable
from novacron.drivers.kubevirt.names import (
    CLAIMS,
    DISK,
    IMPORTS,
    INSTANCES,
    KUBEVIRTS,
    MACHINES,
    MIGRATIONS,
    NODES,
    RESTORES,
    SNAPSHOTS,
    STORAGE_CLASSES,
    UID,
)
from novacron.drivers.kubevirt.nodes import Node, node_of
from novacron.drivers.kubevirt.settings import Settings, settings_of
from novacron.runtime.cache import Cache, Change
from novacron.runtime.client import Client
from novacron.runtime.errors import NotFound
from novacron.runtime.reflector import Reflector
from novacron.runtime.resource import Key, Object

__all__ = ["Belongings", "Cluster", "Index"]

Connect = Callable[[], AbstractAsyncContextManager[Client]]

PATIENCE_SECONDS = 10.0
RECONNECT_SECONDS = 60.0
INSTALL = "https://kubevirt.io/user-guide/cluster_admin/installation"


@dataclass(frozen=True, slots=True)
class Belongings:
    """All that a cluster has of one machine."""

    machine: Object | None
    instance: Object | None
    claims: tuple[Object, ...]
    imports: tuple[Object, ...] = ()

    @property
    def any(self) -> bool:
        """Say whether there is anything at all."""
        return bool(self.machine or self.instance or self.claims)


@dataclass(slots=True)
class Index:
    """Which objects of one kind belong to which machine."""

    cache: Cache
    told: Callable[[str], None]
    of: dict[str, set[Key]] = field(default_factory=dict)
    _uids: dict[Key, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cache.subscribe(self._changed)

    def objects(self, uid: str) -> Iterator[Object]:
        """Return what a machine has of this kind."""
        for key in sorted(self.of.get(uid, ())):
            if (obj := self.cache.get(key)) is not None:
                yield obj

    def _changed(self, change: Change) -> None:
        before = self._uids.get(change.key)
        labels = change.object["metadata"].get("labels") or {} if change.object else {}
        after = labels.get(UID)
        if before is not None and before != after:
            self.of[before].discard(change.key)
            if not self.of[before]:
                del self.of[before]
            del self._uids[change.key]
        if after is not None:
            self.of.setdefault(after, set()).add(change.key)
            self._uids[change.key] = after
        for uid in {before, after} - {None}:
            self.told(str(uid))


@dataclass(slots=True)
class Cluster:
    """One cluster as its API server tells of it.

    ``connect`` gives the client for as long as the cluster is followed, and is asked again when
    that did not help for a while: what says how to reach the cluster may have changed.
    """

    name: str
    connect: Connect
    namespaces: tuple[str, ...] = ("",)
    machines: Index = field(init=False)
    instances: Index = field(init=False)
    claims: Index = field(init=False)
    moves: Index = field(init=False)
    snapshots: Index = field(init=False)
    restores: Index = field(init=False)
    imports: Index = field(init=False)
    classes: Cache = field(default_factory=lambda: Cache(STORAGE_CLASSES))
    installed: Cache = field(default_factory=lambda: Cache(KUBEVIRTS))
    nodes: Cache = field(default_factory=lambda: Cache(NODES))
    settings: Settings = field(default_factory=Settings)
    _tell: Callable[[str], None] | None = None
    _waiting: set[str] = field(default_factory=set)
    _nodes: dict[str, Node] = field(default_factory=dict)
    _open: AsyncExitStack | None = None
    _client: Client | None = None
    _reflectors: list[Reflector] = field(default_factory=list)
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    _opened_at: float = 0.0

    def __post_init__(self) -> None:
        self.machines = Index(Cache(MACHINES), self._told)
        self.instances = Index(Cache(INSTANCES), self._told)
        self.claims = Index(Cache(CLAIMS), self._told)
        self.moves = Index(Cache(MIGRATIONS), self._told)
        self.snapshots = Index(Cache(SNAPSHOTS), self._told)
        self.restores = Index(Cache(RESTORES), self._told)
        self.imports = Index(Cache(IMPORTS), self._told)
        self.nodes.subscribe(self._node_changed)
        self.classes.subscribe(self._class_changed)
        self.installed.subscribe(self._settings_changed)

    @property
    def client(self) -> Client:
        """The client of a cluster that was reached."""
        if self._client is None:
            raise RuntimeError("the cluster is used before it was reached")
        return self._client

    def on_change(self, tell: Callable[[str], None]) -> None:
        """Have the UID of every machine told about which the cluster has news."""
        self._tell = tell

    async def ready(self) -> None:
        """Wait until everything was listed once; raise Unreachable when that takes too long."""
        async with self._opening:
            if self._open is None or self._is_hopeless:
                await self.close()
                await self._begin()
        if self.trouble is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_SECONDS):
                    for cache in self._caches:
                        await cache.synced()
                return
        raise Unreachable(self.trouble or f"cluster {self.name} has not told of its machines yet")

    @property
    def trouble(self) -> str | None:
        """Return why the cluster cannot be followed at present, or None when it can."""
        for reflector in self._reflectors:
            what, trouble = reflector.cache.resource, reflector.trouble
            if isinstance(trouble, NotFound) and reflector.cache is self.imports.cache:
                continue  # an addition that few machines need
            if isinstance(trouble, NotFound):
                return f"the cluster knows no {what}: install KubeVirt ({INSTALL})"
            if trouble is not None:
                return f"{what} cannot be followed: {trouble.message}"
        return None

    def of(self, uid: str) -> Belongings:
        """Return all that there is of a machine."""
        return Belongings(
            next(self.machines.objects(uid), None),
            next(self.instances.objects(uid), None),
            tuple(each for each in self.claims.objects(uid) if DISK in each["metadata"]["labels"]),
            tuple(self.imports.objects(uid)),
        )

    def uids(self) -> Iterable[str]:
        """Return the UIDs of all machines of which there is anything but claims."""
        return self.machines.of.keys() | self.instances.of.keys()

    def waits(self, uid: str, *, waits: bool) -> None:
        """Note whether a machine waits for something that is not its own, such as a class."""
        (self._waiting.add if waits else self._waiting.discard)(uid)

    async def close(self) -> None:
        """Stop following."""
        opened, self._open, self._client = self._open, None, None
        self._reflectors = []
        if opened is not None:
            await opened.aclose()

    @property
    def _is_hopeless(self) -> bool:
        age = asyncio.get_running_loop().time() - self._opened_at
        return self.trouble is not None and age > RECONNECT_SECONDS

    async def _begin(self) -> None:
        self._opened_at = asyncio.get_running_loop().time()
        opened = AsyncExitStack()
        self._client = await opened.enter_async_context(self.connect())
        self._open = opened
        imports = self.imports.cache
        self._reflectors = [
            Reflector(self._client, cache, namespace, labels=UID, optional=cache is imports)
            for cache in (*(index.cache for index in self._indices), imports)
            for namespace in self.namespaces
        ]
        for cache in self._whole:
            self._reflectors.append(Reflector(self._client, cache))
        following = asyncio.create_task(self._follow(), name=f"follow {self.name}")
        opened.push_async_callback(_ended, following)

    @property
    def _caches(self) -> tuple[Cache, ...]:
        return (*(index.cache for index in self._indices), *self._whole)

    @property
    def _indices(self) -> tuple[Index, ...]:
        """What belongs to machines."""
        mine = (self.machines, self.instances, self.claims)
        return (*mine, self.moves, self.snapshots, self.restores)

    @property
    def _whole(self) -> tuple[Cache, ...]:
        """What is the cluster's own."""
        return self.classes, self.installed, self.nodes

    async def _follow(self) -> None:
        async with asyncio.TaskGroup() as following:
            for reflector in self._reflectors:
                following.create_task(reflector.run())

    def _told(self, uid: str) -> None:
        if self._tell is not None:
            self._tell(uid)

    def _class_changed(self, change: Change) -> None:
        del change
        for uid in self._waiting:
            self._told(uid)

    def _node_changed(self, change: Change) -> None:
        """Tell of the machines on a node that died, was fenced or came back."""
        name = change.key.name
        before = self._nodes.get(name, Node())
        self._nodes[name] = now = node_of(change.object)
        if before == now:
            return
        for instance in self.instances.cache.objects():
            if (instance.get("status") or {}).get("nodeName") == name:
                self._told(instance["metadata"]["labels"][UID])

    def node(self, name: str | None) -> Node | None:
        """Return how a node is; None where that is not known."""
        return self._nodes.get(name) if name else None

    def _settings_changed(self, change: Change) -> None:
        before, self.settings = self.settings, settings_of(self.installed.objects())
        if before != self.settings:
            self._class_changed(change)


async def _ended(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
