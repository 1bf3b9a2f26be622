"""What is in one KubeVirt cluster of ours, kept current by watches.

Only objects that carry a machine's UID are followed, and what says what a cluster can do: storage
classes and KubeVirt's own settings. Nobody asks the cluster how a machine is: the cluster tells.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from novacron.core.errors import Unreachable
from novacron.drivers.kubevirt.attention import Attention
from novacron.drivers.kubevirt.belongings import Belongings
from novacron.drivers.kubevirt.errors import in_our_words
from novacron.drivers.kubevirt.index import Index
from novacron.drivers.kubevirt.last_words import LastWords
from novacron.drivers.kubevirt.names import (
    CLAIMS,
    DISK,
    IMPORTS,
    INSTANCES,
    KUBEVIRTS,
    MACHINES,
    MIGRATIONS,
    NODES,
    PODS,
    RESTORES,
    SNAPSHOTS,
    STORAGE_CLASSES,
    UID,
)
from novacron.drivers.kubevirt.nodes import Node, node_of
from novacron.drivers.kubevirt.settings import Settings, settings_of
from novacron.runtime.cache import Cache, Change
from novacron.runtime.client import Client
from novacron.runtime.errors import ApiError, Forbidden, NotFound, Unauthorized
from novacron.runtime.reflector import Reflector
from novacron.runtime.resource import NAMESPACES, key_of

__all__ = ["Cluster"]

Connect = Callable[[], AbstractAsyncContextManager[Client]]

PATIENCE_SECONDS = 10.0
PAUSE_SECONDS = 0.05
NO_NODE = "spec.nodeName="
RECONNECT_SECONDS = 60.0
# Credentials that were refused may have been replaced already.
REFUSED_SECONDS = 5.0
FIRST_NAMESPACE = "kube-system"
INSTALL = "https://kubevirt.io/user-guide/cluster_admin/installation"


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
    unplaced: Index = field(init=False)
    moves: Index = field(init=False)
    snapshots: Index = field(init=False)
    restores: Index = field(init=False)
    imports: Index = field(init=False)
    classes: Cache = field(default_factory=lambda: Cache(STORAGE_CLASSES))
    installed: Cache = field(default_factory=lambda: Cache(KUBEVIRTS))
    nodes: Cache = field(default_factory=lambda: Cache(NODES))
    settings: Settings = field(default_factory=Settings)
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    _tell: Callable[[str], None] | None = None
    _waiting: set[str] = field(default_factory=set)
    _attention: Attention = field(init=False)
    _nodes: dict[str, Node] = field(default_factory=dict)
    _last_words: LastWords = field(default_factory=LastWords)
    _open: AsyncExitStack | None = None
    _client: Client | None = None
    _reflectors: list[Reflector] = field(default_factory=list)
    _secrets: list[Reflector] = field(default_factory=list)
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    _opened_at: float = 0.0
    _identity: str | None = None
    _refused: bool = False
    _silent: bool = False

    def __post_init__(self) -> None:
        self.machines = Index(Cache(MACHINES), self._told)
        self.instances = Index(Cache(INSTANCES), self._told)
        self.claims = Index(Cache(CLAIMS), self._told)
        self._attention = Attention(self.now)
        self.machines.cache.subscribe(self._attention.machine_changed)
        self.machines.cache.subscribe(self._last_words.machine_changed)
        self.instances.cache.subscribe(self._attention.guest_changed)
        self.instances.cache.subscribe(self._last_words.guest_changed)
        self.claims.cache.subscribe(self._attention.claim_changed)
        # Pods have none for a moment only; whoever looks at the machine later sees who still does.
        self.unplaced = Index(Cache(PODS), lambda _: None)
        self.moves = Index(Cache(MIGRATIONS), self._told)
        self.snapshots = Index(Cache(SNAPSHOTS), self._told)
        self.restores = Index(Cache(RESTORES), self._told)
        self.imports = Index(Cache(IMPORTS), self._told)
        self.nodes.subscribe(self._node_changed)
        self.installed.subscribe(self._settings_changed)
        for told_of_abilities in (self.classes, self.installed):
            told_of_abilities.subscribe(self._can_do_more)

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
                with in_our_words():
                    await self._begin()
        if not self._told_all and not self._silent:
            # Only the first who come wait for a silent cluster: they work for others too.
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_SECONDS):
                    # What is waited for are many things, of which some may never come.
                    while not self._told_all and self.trouble is None:  # noqa: ASYNC110
                        await asyncio.sleep(PAUSE_SECONDS)
            self._silent = not self._told_all
        if self.trouble is not None or not self._told_all:
            waits = f"cluster {self.name} has not told of its machines yet"
            raise Unreachable(self.trouble or waits)

    async def reached(self, host: str) -> None:
        """Be ready, where this is the cluster that is asked for."""
        if host != self.name:
            raise Unreachable(f"this is the driver of {self.name}, not of {host}")
        await self.ready()

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
        now, vm = self.now(), next(self.machines.objects(uid), None)
        disks = (each for each in self.claims.objects(uid) if DISK in each["metadata"]["labels"])
        return Belongings(
            machine=vm,
            instance=next(self.instances.objects(uid), None),
            claims=tuple(disks),
            imports=tuple(self.imports.objects(uid)),
            unheeded=self._attention.lag(uid, vm, now),
            unplaced=next(self.unplaced.objects(uid), None),
            at=now,
            unbound=now - self._attention.bound,
            last_words=self._last_words.of(key_of(vm)) if vm else "",
        )

    def uids(self) -> Iterable[str]:
        """Return the UIDs of all machines of which there is anything but claims."""
        return self.machines.of.keys() | self.instances.of.keys()

    def waits(self, uid: str, *, waits: bool) -> None:
        """Note whether a machine waits for something that is not its own.

        Such as a class, or that KubeVirt is set to allow what it asks for.
        """
        (self._waiting.add if waits else self._waiting.discard)(uid)

    async def identity(self) -> str:
        """Return what tells the cluster from all others; empty where we may not know."""
        await self.ready()
        if self._identity is None:
            try:
                found = await self.client.get(NAMESPACES, FIRST_NAMESPACE)
                self._identity = str(found["metadata"]["uid"])
            except (Forbidden, NotFound):
                self._identity = ""
            except ApiError as error:
                raise Unreachable(error.message) from error
        return self._identity

    def refused(self) -> None:
        """Note that the cluster does not know us any more, so that we say anew who we are."""
        self._refused = True

    async def again(self) -> None:
        """Find out anew how the cluster is reached, unless that was done a moment ago."""
        async with self._opening:
            if self._age > RECONNECT_SECONDS:
                await self.close()

    async def close(self) -> None:
        """Stop following."""
        opened, self._open, self._client = self._open, None, None
        self._identity, self._refused, self._silent = None, False, False
        self._reflectors = []
        if opened is not None:
            await opened.aclose()

    @property
    def _is_hopeless(self) -> bool:
        refused = any(isinstance(each.trouble, Unauthorized) for each in self._reflectors)
        if refused or self._refused:
            return self._age > REFUSED_SECONDS
        return self.trouble is not None and self._age > RECONNECT_SECONDS

    @property
    def _age(self) -> float:
        return asyncio.get_running_loop().time() - self._opened_at

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
        self._reflectors.append(Reflector(self._client, self.classes))
        self._secrets = [Reflector(self._client, each) for each in (self.installed, self.nodes)]
        self._secrets += [
            Reflector(self._client, self.unplaced.cache, each, selector=NO_NODE, labels=UID)
            for each in self.namespaces
        ]
        following = asyncio.create_task(self._follow(), name=f"follow {self.name}")
        opened.push_async_callback(_ended, following)

    @property
    def _caches(self) -> tuple[Cache, ...]:
        return (*(index.cache for index in self._indices), self.classes)

    @property
    def _indices(self) -> tuple[Index, ...]:
        """What belongs to machines."""
        mine = (self.machines, self.instances, self.claims)
        return (*mine, self.moves, self.snapshots, self.restores)

    @property
    def _told_all(self) -> bool:
        """Say whether everything was listed, but for what is kept from us and not needed."""
        return all(cache.is_synced for cache in self._caches) and all(
            each.cache.is_synced or each.trouble is not None for each in self._secrets
        )

    async def _follow(self) -> None:
        async with asyncio.TaskGroup() as following:
            for reflector in (*self._reflectors, *self._secrets):
                following.create_task(reflector.run())

    def _told(self, uid: str) -> None:
        if self._tell is not None:
            self._tell(uid)

    def _can_do_more(self, change: Change) -> None:
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
        del change
        self.settings = settings_of(self.installed.objects())


async def _ended(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
