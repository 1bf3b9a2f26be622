"""One operator with webhooks for the everyday tests, and a stage for those that need their own."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from api import Api, Refused
from machines import condition, host
from novacron.drivers.simulation import World
from novacron.localcluster.controlplane import ControlPlane
from operators import PATIENCE_SECONDS, RunningOperator, eventually

Object = dict[str, Any]


def _is_heard_of(obj: Object) -> bool:
    """Say whether the operator knows an object as it is."""
    heard = (obj.get("status") or {}).get("observedGeneration")
    return bool(heard == obj["metadata"]["generation"])


@dataclass(slots=True)
class Stage:
    """A namespace, an operator that watches it, and simulated hosts."""

    api: Api
    operator: RunningOperator
    namespace: str
    hosts: list[str]

    def add_host(self, **spec: Any) -> str:
        """Declare a host and wait until it is ready."""
        name = self.declare_host(**spec)
        self.until_host(name, lambda obj: condition(obj, "Ready").get("status") == "True")
        return name

    def declare_host(self, **spec: Any) -> str:
        """Declare a host."""
        name = f"host-{uuid4().hex[:8]}"
        self.hosts.append(name)
        self.api.create(host(name, **spec))
        return name

    def until(
        self, name: str, claim: Callable[[Object], bool], seconds: float = PATIENCE_SECONDS
    ) -> Object:
        """Wait until a claim holds of a machine, and return it."""
        return self._until(lambda: self.api.machine(self.namespace, name), claim, name, seconds)

    def until_host(self, name: str, claim: Callable[[Object], bool]) -> Object:
        """Wait until a claim holds of a host, and return it."""
        return self._until(lambda: self.api.host(name), claim, name)

    def close(self, *names: str) -> None:
        """Cordon hosts, and wait until the operator has heard of it."""
        for name in names:
            self.api.patch_host(name, {"spec": {"unschedulable": True}})
        for name in names:
            self.until_host(name, _is_heard_of)

    def open(self, *names: str) -> None:
        """Have machines come to hosts again."""
        for name in names:
            self.api.patch_host(name, {"spec": {"unschedulable": False}})

    def until_running(self, name: str) -> Object:
        """Wait until a machine is Ready."""
        return self.until(name, lambda obj: condition(obj, "Ready").get("status") == "True")

    def until_gone(self, name: str) -> None:
        """Wait until a machine is no more."""
        eventually(
            lambda: self.api.machine(self.namespace, name) is None,
            lambda: f"{name} is gone: {self.api.machine(self.namespace, name)}",
        )

    def until_event(self, name: str, reason: str, namespace: str | None = None) -> Object:
        """Wait for an event about an object, and return it."""
        found: list[Object] = []

        def happened() -> bool:
            events = self.api.events(namespace or self.namespace, name)
            found[:] = [event for event in events if event["reason"] == reason]
            return bool(found)

        eventually(happened, lambda: f"event {reason} about {name}; log:\n{self.operator.log}")
        return found[0]

    def world(self) -> World:
        """Return what is behind the operator's back."""
        return World(self.operator.simulation_file)

    def arrive(self, name: str) -> None:
        """Have a machine that moves be there, however long it was to take."""
        obj = self.api.machine(self.namespace, name)
        assert obj is not None
        uid = obj["metadata"]["uid"]
        with self.world() as world:
            # It is said that a move begins before it does.
            sent = (uid, "move")
            eventually(
                lambda: sent in [(each.uid, each.changing) for each in world.machines()],
                lambda: f"{name} is sent: {world.machines()}; log:\n{self.operator.log}",
            )
            world.finish(uid)

    def _until(
        self,
        find: Callable[[], Object | None],
        claim: Callable[[Object], bool],
        name: str,
        seconds: float = PATIENCE_SECONDS,
    ) -> Object:
        seen: list[Object | None] = [None]

        def holds() -> bool:
            seen[0] = find()
            return seen[0] is not None and claim(seen[0])

        eventually(holds, lambda: f"{name} is {seen[0]}; log:\n{self.operator.log}", seconds)
        assert seen[0] is not None
        return seen[0]

    def clear(self) -> None:
        """Remove everything the test made."""
        for obj in self.api.machines(self.namespace):
            if "deletionTimestamp" not in obj["metadata"]:
                self.api.delete_machine(self.namespace, obj["metadata"]["name"])
        for name in self.hosts:
            if ((self.api.host(name) or {}).get("spec") or {}).get("simulation"):
                self.api.patch_host(name, {"spec": {"simulation": {"faults": None}}})
        eventually(
            lambda: not self.api.machines(self.namespace),
            lambda: f"left: {self.api.machines(self.namespace)}; log:\n{self.operator.log}",
        )
        eventually(self._hosts_gone, lambda: f"hosts are gone; log:\n{self.operator.log}")

    def _hosts_gone(self) -> bool:
        for name in self.hosts:
            if self.api.host(name):
                with suppress(Refused):  # its last machine may be going this moment
                    self.api.delete_host(name)
        return not any(self.api.host(name) for name in self.hosts)


@pytest.fixture(scope="module")
def everyday(
    cluster: ControlPlane, api: Api, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningOperator]:
    """One operator with webhooks for all tests of a module."""
    namespace = f"everyday-{uuid4().hex[:8]}"
    api.create_namespace(namespace)
    directory: Path = tmp_path_factory.mktemp("operator")
    operator = RunningOperator(cluster, directory, [namespace], webhooks=True).start()
    yield operator
    assert operator.stop() == 0, operator.log


@pytest.fixture
def stage(everyday: RunningOperator, api: Api) -> Iterator[Stage]:
    """The everyday operator with nothing in its namespace."""
    scene = Stage(api, everyday, everyday.namespaces[0], [])
    yield scene
    scene.clear()
