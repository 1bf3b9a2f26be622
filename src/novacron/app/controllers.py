"""Caches, controllers and the placer, joined for one process."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from novacron.app.nodes import node_marks
from novacron.app.registry import HOST_KIND, HOSTS, Family
from novacron.app.settings import Settings
from novacron.controllers.adapter import MachineController
from novacron.controllers.drivers import DriverPool, MakeDriver
from novacron.controllers.host import HostController
from novacron.controllers.inventory import InventoryWatch
from novacron.controllers.kept import VolumeHolders
from novacron.controllers.ledger import Ledger, Owner
from novacron.controllers.metrics import MachineMetrics
from novacron.controllers.mover import Mover
from novacron.controllers.placement import Placer
from novacron.controllers.ports import MachineKind, PlacedKind, ReferredKind, ReferringKind
from novacron.controllers.prospects import Prospects
from novacron.controllers.reconciler import MachineReconciler, always
from novacron.controllers.referred import ReferredController
from novacron.controllers.related import Related
from novacron.core.surroundings import Reference
from novacron.families.seal import Seal
from novacron.runtime.cache import Cache
from novacron.runtime.client import Client
from novacron.runtime.controller import Controller, anything
from novacron.runtime.events import Events
from novacron.runtime.metrics import RuntimeMetrics
from novacron.runtime.ownership import Ownership
from novacron.runtime.queue import Queue
from novacron.runtime.reflector import Reflector
from novacron.runtime.resource import Key, Object, Resource
from novacron.runtime.shards import LEADER
from novacron.runtime.writer import Writer

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

__all__ = ["Controllers"]

log = logging.getLogger(__name__)

EVENTS_FLUSH_SECONDS = 3
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)


@dataclass(slots=True)
class Controllers:
    """Everything of one process that follows objects and acts on them.

    ``client`` writes only while this process may; ``reporter`` has no such fence, for events, which
    are still to be told when everything was handed over.
    """

    settings: Settings
    families: tuple[Family, ...]
    client: Client
    reporter: Client
    ownership: Ownership
    metrics: RuntimeMetrics
    makers: dict[str, MakeDriver]
    now: Callable[[], datetime]
    seal: Seal
    events: Events = field(init=False)
    ledger: Ledger = field(init=False)
    holders: VolumeHolders = field(default_factory=VolumeHolders)
    drivers: DriverPool = field(init=False)
    inventory: InventoryWatch = field(init=False)
    prospects: Prospects = field(init=False)
    machine_metrics: MachineMetrics = field(init=False)
    collectors: "list[Collector]" = field(init=False)
    _caches: list[Cache] = field(default_factory=list)
    _reflectors: list[Reflector] = field(default_factory=list)
    _placers: list[tuple[Cache, Controller]] = field(default_factory=list)
    _owned: dict[Resource, Controller] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.events = Events(self.reporter, "novacron-operator")
        self.ledger = Ledger(HOST_KIND)
        self.drivers = DriverPool(HOST_KIND, self.makers)
        self.inventory = InventoryWatch(
            self.drivers,
            self.ledger,
            self._wake,
            lambda owner: self.ownership.owns(owner.key),
            lambda: bool(self.ownership.held),
            self.settings.reconcile_interval,
        )
        self.drivers.news = self.inventory.heard
        self.prospects = Prospects(self.ledger, self.inventory.heard)
        self.machine_metrics = MachineMetrics(self.inventory, self.ownership.owns)
        self.collectors = [self.machine_metrics]
        # Hosts before machines, so that drivers are there when machines are first looked at.
        self._add_hosts()
        self.ledger.follow_namespaces(self._cache(NAMESPACES, ("",)))
        for family in self.families:
            for resource, make in family.machines:
                self._add_machines(family, resource, make(self.seal))

    def check(self) -> str | None:
        """Say which cache is not filled yet, or nothing when all are."""
        waiting = [str(cache.resource) for cache in self._caches if not cache.is_synced]
        return f"not listed yet: {', '.join(waiting)}" if waiting else None

    def parts(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Return what must run for as long as the process does."""
        for reflector in self._reflectors:
            yield reflector.run()
        for controller in (*(placer for _, placer in self._placers), *self._owned.values()):
            yield controller.run()
        yield self.events.run()
        yield self._watch_inventory()

    async def gained(self, claim: str) -> None:
        """See the world as it is now, before anything is done under a new claim.

        The former holder may have acted a moment ago; what it wrote may not be here yet.
        """
        for cache in self._caches:
            await cache.synced()
        if self.settings.leader_elect:
            for reflector in self._reflectors:
                await reflector.refresh()
        log.info("gained %s", claim)

    def begun(self, claim: str) -> None:
        """Look at everything that this process is answerable for from now on."""
        self.metrics.claim_held(claim, held=True)
        for cache in self._caches:
            if cache.resource in self._owned:
                self._owned[cache.resource].add_all(cache.keys())
        if claim == LEADER:
            for cache, placer in self._placers:
                placer.add_all(cache.keys())

    async def drain(self, claim: str) -> None:
        """Let what is in hand under a claim come to its end."""
        self.metrics.claim_held(claim, held=False)
        for controller in self._owned.values():
            await controller.idle(lambda key: self.ownership.claim_for(key) == claim)
        if claim == LEADER:
            for _, placer in self._placers:
                await placer.idle(lambda _: True)
        log.info("drained %s", claim)

    async def close(self) -> None:
        """Say what is left to say and let go of the hosts."""
        with suppress(TimeoutError):
            async with asyncio.timeout(EVENTS_FLUSH_SECONDS):
                await self.events.flush()
        await self.drivers.close()

    def _add_hosts(self) -> None:
        cache = self._cache(HOSTS, ("",))
        writer = Writer(self.client, cache, "host")
        queue = self._queue(writer.name)
        controller = HostController(
            HOST_KIND,
            writer,
            self.drivers,
            self.ledger,
            self.events,
            self.settings.reconcile_interval,
            self.now,
            queue,
            partial(node_marks, self.client),
            self.holders,
        )
        self.drivers.follow(cache)
        self.ledger.follow_hosts(cache)
        self._owned[HOSTS] = self._controller(
            writer, controller.reconcile, queue, self.ownership.owns
        )

    def _add_machines(self, family: Family, resource: Resource, kind: MachineKind) -> None:
        cache = self._cache(resource, self.settings.watch_namespaces or ("",))
        if isinstance(kind, ReferringKind):
            kind = self._with_related(family, cache, kind)
        self.machine_metrics.follow(cache)
        placed = isinstance(kind, PlacedKind)
        if isinstance(kind, PlacedKind):
            self.ledger.follow_machines(cache, kind)
            self.holders.follow(cache, kind)
            self._placers += [(cache, self._placer(kind, cache)), (cache, self._mover(kind, cache))]
        else:
            self.ledger.follow_unplaced(cache, kind)
        writer = Writer(self.client, cache, resource.plural)
        fence = self.client.fence
        reconciler = MachineReconciler(
            self.drivers,
            fence.seconds_left if fence else always,
            self.now,
            self.settings.shutdown_grace,
            just_listed=self.inventory.just_listed,
            held=partial(self.holders.other, resource),
            overdrawn=self.ledger.overdrawn,
        )
        machines = MachineController(
            kind,
            writer,
            reconciler,
            self.events,
            self.now,
            self.inventory.locate,
            self.inventory.noted,
            self.prospects,
        )
        self._owned[resource] = self._controller(
            writer,
            machines.reconcile,
            self._queue(writer.name),
            self.ownership.owns,
            # Nothing is to be done about a machine before the placer wrote our finalizer.
            lambda obj: not placed or kind.finalizer in (obj["metadata"].get("finalizers") or ()),
        )
        if family.made_in_kubevirt:
            self._count_in_kubevirt(family, cache)

    def _count_in_kubevirt(self, family: Family, cache: Cache) -> None:
        from novacron.app.kubevirt_metrics import KubeVirtMetrics, about  # noqa: PLC0415

        metrics = KubeVirtMetrics(self.ownership.owns, self.metrics)
        related = [each for each in self._caches if each.resource in family.related]
        metrics.follow(cache, {each.resource.plural: each for each in related})
        self.drivers.made, self.drivers.left = metrics.made, metrics.left
        self._owned[cache.resource].observer = metrics
        self._owned[cache.resource].about = partial(about, cache)
        self.collectors.append(metrics)

    def _with_related(self, family: Family, cache: Cache, kind: ReferringKind) -> MachineKind:
        """Follow what objects of a kind refer to; return the kind that can look it up."""
        owner, resources = partial(Owner, cache.resource), {r.plural: r for r in family.related}

        def used(reference: Reference) -> None:
            key = Key(reference.namespace, reference.name)
            self._wake(Owner(resources[reference.plural], key))

        related = Related(kind, lambda key: self._wake(owner(key)), used)
        for resource in family.related:
            namespaces = self.settings.watch_namespaces if resource.namespaced else ()
            referred = self._cache(resource, namespaces or ("",))
            related.follow_referred(referred)
            if resource in (reported := dict(family.reported)):
                self._add_referred(referred, reported[resource](), related)
        related.follow_referring(cache)
        return kind.amid(related)

    def _add_referred(self, cache: Cache, kind: ReferredKind, related: Related) -> None:
        """Keep the status of objects that machines refer to."""
        writer = Writer(self.client, cache, cache.resource.plural)

        def users(key: Key) -> Iterable[Key]:
            return related.users(Reference(cache.resource.plural, key.namespace, key.name))

        controller = ReferredController(kind, writer, users, self.now)
        self._owned[cache.resource] = self._controller(
            writer, controller.reconcile, self._queue(writer.name), self.ownership.owns
        )

    def _placer(self, kind: PlacedKind, cache: Cache) -> Controller:
        writer = Writer(self.client, cache, f"placement-{cache.resource.plural}")
        queue = self._queue(writer.name)
        placer = Placer(
            kind, writer, self.ledger, self.events, self.now, queue, self.inventory.locate
        )
        return self._controller(
            writer, placer.reconcile, queue, lambda _: self.ownership.leader, placer.concerns
        )

    def _mover(self, kind: PlacedKind, cache: Cache) -> Controller:
        writer = Writer(self.client, cache, f"moves-{cache.resource.plural}")
        queue = self._queue(writer.name)
        mover = Mover(
            kind,
            writer,
            self.ledger,
            self.events,
            self.now,
            queue,
            self.settings.host_failure_grace,
        )
        return self._controller(
            writer, mover.reconcile, queue, lambda _: self.ownership.leader, mover.concerns
        )

    def _controller(
        self,
        writer: Writer,
        reconcile: Callable[[Key], Coroutine[Any, Any, Any]],
        queue: Queue,
        owns: Callable[[Key], bool],
        concerns: Callable[[Object], bool] = anything,
    ) -> Controller:
        controller = Controller(
            writer.name, reconcile, owns, self.settings.workers, self.metrics, queue
        )
        controller.follow(writer.cache, concerns)
        return controller

    def _queue(self, name: str) -> Queue:
        queue = Queue(on_wait=self.metrics.waited(name))
        self.metrics.depth_of(name, lambda: len(queue))
        return queue

    def _cache(self, resource: Resource, namespaces: tuple[str, ...]) -> Cache:
        cache = Cache(resource)
        self._caches.append(cache)
        self._reflectors += [
            Reflector(self.client, cache, namespace, self.metrics) for namespace in namespaces
        ]
        return cache

    def _wake(self, owner: Owner) -> None:
        controller = self._owned.get(owner.resource)
        if controller and self.ownership.owns(owner.key):
            controller.queue.add(owner.key)

    async def _watch_inventory(self) -> None:
        for cache in self._caches:
            await cache.synced()
        await self.inventory.run()
