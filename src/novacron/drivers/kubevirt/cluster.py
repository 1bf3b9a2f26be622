"""What is in one KubeVirt cluster of ours, kept current by watches.

Only objects that carry a machine's UID are followed, and storage classes. Nobody asks the cluster
how a machine is: the cluster tells.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from novacron.core.errors import Unreachable
from novacron.drivers.kubevirt.names import CLAIMS, INSTANCES, MACHINES, STORAGE_CLASSES, UID
from novacron.runtime.cache import Cache, Change
from novacron.runtime.client import Client
from novacron.runtime.reflector import Reflector
from novacron.runtime.resource import Key, Object, Resource

__all__ = ["Belongings", "Cluster"]

PATIENCE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Belongings:
    """All that a cluster has of one machine."""

    machine: Object | None
    instance: Object | None
    claims: tuple[Object, ...]

    @property
    def any(self) -> bool:
        """Say whether there is anything at all."""
        return bool(self.machine or self.instance or self.claims)


@dataclass(slots=True)
class _Index:
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
    """One cluster as its API server tells of it."""

    client: Client
    name: str
    namespaces: tuple[str, ...] = ("",)
    machines: _Index = field(init=False)
    instances: _Index = field(init=False)
    claims: _Index = field(init=False)
    classes: Cache = field(default_factory=lambda: Cache(STORAGE_CLASSES))
    _tell: Callable[[str], None] | None = None
    _waiting: set[str] = field(default_factory=set)
    _reflectors: list[Reflector] = field(default_factory=list)
    _following: "asyncio.Task[None] | None" = None

    def __post_init__(self) -> None:
        self.machines = self._index(MACHINES)
        self.instances = self._index(INSTANCES)
        self.claims = self._index(CLAIMS)
        self.classes.subscribe(self._class_changed)
        self._reflectors.append(Reflector(self.client, self.classes))

    def on_change(self, tell: Callable[[str], None]) -> None:
        """Have the UID of every machine told about which the cluster has news."""
        self._tell = tell

    async def ready(self) -> None:
        """Wait until everything was listed once; raise Unreachable when that takes too long."""
        if self._following is None:
            self._following = asyncio.create_task(self._follow(), name=f"follow {self.name}")
        if trouble := self.trouble:
            raise Unreachable(trouble, reason="KubeVirtApiError")
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_SECONDS):
                for cache in self._caches:
                    await cache.synced()
            return
        why = self.trouble or f"cluster {self.name} has not told of its machines yet"
        raise Unreachable(why, reason="KubeVirtApiError")

    @property
    def trouble(self) -> str | None:
        """Return why the cluster cannot be followed at present, or None when it can."""
        for reflector in self._reflectors:
            if reflector.trouble is not None:
                what = reflector.cache.resource
                return f"{what} of cluster {self.name} cannot be followed: {reflector.trouble}"
        return None

    def of(self, uid: str) -> Belongings:
        """Return all that there is of a machine."""
        return Belongings(
            next(self.machines.objects(uid), None),
            next(self.instances.objects(uid), None),
            tuple(self.claims.objects(uid)),
        )

    def uids(self) -> Iterable[str]:
        """Return the UIDs of all machines of which there is anything but claims."""
        return self.machines.of.keys() | self.instances.of.keys()

    def waits(self, uid: str, *, waits: bool) -> None:
        """Note whether a machine waits for something that is not its own, such as a class."""
        (self._waiting.add if waits else self._waiting.discard)(uid)

    async def close(self) -> None:
        """Stop following."""
        if self._following is not None:
            self._following.cancel()
            with suppress(asyncio.CancelledError):
                await self._following

    def _index(self, resource: Resource) -> _Index:
        cache = Cache(resource)
        self._reflectors += [
            Reflector(self.client, cache, namespace, labels=UID) for namespace in self.namespaces
        ]
        return _Index(cache, self._told)

    @property
    def _caches(self) -> tuple[Cache, ...]:
        indices = (self.machines, self.instances, self.claims)
        return (*(index.cache for index in indices), self.classes)

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
