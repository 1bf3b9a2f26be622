"""All parts of the stand-in at work: who looks at what, and after whose changes."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta

from novacron.localcluster.kubevirt.names import NAMESPACE
from novacron.localcluster.kubevirt.standin.imports import Imports
from novacron.localcluster.kubevirt.standin.instances import Instances
from novacron.localcluster.kubevirt.standin.nodes import Nodes
from novacron.localcluster.kubevirt.standin.pods import Pods, owner_of
from novacron.localcluster.kubevirt.standin.volumes import Claims, Volumes
from novacron.localcluster.kubevirt.standin.world import World
from novacron.runtime.cache import Cache, Change
from novacron.runtime.controller import Controller
from novacron.runtime.events import Events
from novacron.runtime.resource import Key

__all__ = ["Agent"]

WORKERS = 8
REPORTER = "stand-in"


def _all(_: Key) -> bool:
    return True


@dataclass(slots=True)
class Agent:
    """The stand-in as a whole."""

    world: World
    _controllers: dict[str, Controller] = field(default_factory=dict)

    async def run(self) -> None:
        """Play until cancelled."""
        world, nodes = self.world, Nodes(self.world)
        events = Events(world.client, REPORTER)
        async with asyncio.TaskGroup() as group:
            group.create_task(world.follow())
            for cache in world.caches:
                await cache.synced()
            self._add("nodes", world.nodes, nodes.reconcile)
            self._add("instances", world.instances, Instances(world, events).reconcile)
            self._add("pods", world.pods, Pods(world).reconcile)
            self._add("claims", world.claims, Claims(world, events).reconcile)
            self._add("volumes", world.volumes, Volumes(world).reconcile)
            if world.imports is not None:
                played = Imports(world, world.imports)
                self._add("imports", world.imports, played.reconcile)
                self._controllers["imports"].follow(world.claims)
            self._relate()
            self._controllers["nodes"].add_all(Key("", name) for name in world.names)
            group.create_task(events.run())
            group.create_task(nodes.run())
            for controller in self._controllers.values():
                group.create_task(controller.run())

    def _add(
        self, name: str, cache: Cache, reconcile: Callable[[Key], Awaitable[timedelta | None]]
    ) -> None:
        controller = Controller(name, reconcile, _all, workers=WORKERS)
        controller.follow(cache)
        self._controllers[name] = controller

    def _relate(self) -> None:
        """Have things looked at when what they depend on changes."""
        world = self.world
        world.pods.subscribe(self._pod_changed)
        world.instances.subscribe(self._instance_changed)
        world.migrations.subscribe(self._migration_changed)
        world.classes.subscribe(lambda _: self._look("claims", world.claims))
        world.nodes.subscribe(self._node_changed)

    def _pod_changed(self, change: Change) -> None:
        owner = owner_of(change.object) if change.object else None
        if owner:
            self._controllers["instances"].queue.add(owner)
        if change.object is None and change.key.namespace == NAMESPACE:
            self._controllers["nodes"].add_all(Key("", name) for name in self.world.names)

    def _instance_changed(self, change: Change) -> None:
        if change.object:
            pods = self.world.pods_of(change.object)
            keys = (Key(p["metadata"]["namespace"], p["metadata"]["name"]) for p in pods)
            self._controllers["pods"].add_all(keys)
        else:
            self._look("pods", self.world.pods)

    def _migration_changed(self, change: Change) -> None:
        if change.object:
            name = change.object["spec"]["vmiName"]
            self._controllers["instances"].queue.add(Key(change.key.namespace, name))

    def _node_changed(self, change: Change) -> None:
        if change.object is None or change.key.name in self.world.names:
            self._look("pods", self.world.pods)
            self._look("instances", self.world.instances)

    def _look(self, name: str, cache: Cache) -> None:
        self._controllers[name].add_all(cache.keys())
