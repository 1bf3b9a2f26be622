"""The operator is killed right before and right after each of its writes, and started again.

One undisturbed run of a scenario tells all its writes. Then each gets a machine of its own in a
namespace of its own; an operator that sees only this one is killed at the write; and in the end
one undisturbed operator finishes all of them. Each must end like the undisturbed one, and the
simulated hosts must have exactly the machines that objects ask for.
"""

import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from api import Api
from crash.knife import Point
from crash.scenarios import SCENARIOS, Scenario, running, stopped
from machines import condition, host, virtual_machine
from novacron.drivers.simulation import World
from novacron.localcluster.controlplane import ControlPlane
from operators import RunningOperator, eventually

Object = dict[str, Any]

TESTS = Path(__file__).parent.parent
NAME = "victim"


@dataclass(slots=True)
class Theatre:
    """Where one scenario is played again and again."""

    plane: ControlPlane
    api: Api
    directory: Path
    scenario: Scenario
    host: str
    namespaces: list[str] = field(default_factory=list)

    def prepare_host(self) -> None:
        """Declare the host and have it found ready, so that its writes are not in the way."""
        self.api.create(host(self.host, simulation=self.scenario.simulation))
        operator = RunningOperator(self.plane, self.directory, ["nowhere"], name="host").start()
        try:
            eventually(self.host_is_ready, lambda: f"the host is ready: {operator.log}")
        finally:
            operator.stop()

    def host_is_ready(self) -> bool:
        """Say whether the host was found ready."""
        return condition(self.api.host(self.host) or {}, "Ready").get("status") == "True"

    def add_machines(self, count: int) -> list[str]:
        """Bring machines to where the scenario begins, each in a namespace of its own."""
        first = len(self.namespaces)
        new = [f"{self.host}-{first + number}" for number in range(count)]
        self.namespaces += new
        for name in new:
            self.api.create_namespace(name)
            if self.scenario.exists_before:
                self.api.create(self.machine(name))
        if self.scenario.exists_before:
            self.finish(running if self.scenario.running_before else stopped, new)
        return new

    def machine(self, namespace: str) -> Object:
        """Return the machine as it is at the beginning."""
        return virtual_machine(
            NAME, namespace, cpu=2, running=self.scenario.running_before, on=self.host
        )

    def act(self, namespace: str) -> None:
        """Do what the user does."""
        if not self.scenario.exists_before:
            self.api.create(self.machine(namespace))
        elif self.scenario.patch is None:
            self.api.delete_machine(namespace, NAME)
        else:
            self.api.patch_machine(namespace, NAME, self.scenario.patch)

    def play(self, namespace: str, point: Point | None) -> Path:
        """Run the scenario under the knife; return the journal of its writes."""
        journal = self.directory / f"{namespace}.journal"
        journal.touch()
        operator = RunningOperator(
            self.plane,
            self.directory,
            [namespace],
            flags=(),
            command=(sys.executable, "-m", "crash.operator_under_knife"),
            environment={
                "JOURNAL": str(journal),
                "POINT": str(point or ""),
                "PYTHONPATH": str(TESTS),
            },
            name=namespace,
        )
        self.act(namespace)
        operator.start(wait=False)
        assert operator.process is not None
        try:
            if point is None:
                eventually(
                    lambda: self.settled(namespace), lambda: f"{self.scenario.name}: {operator.log}"
                )
                assert operator.stop() == 0, operator.log
            else:
                died = operator.process.wait(30)
                assert died == -signal.SIGKILL, f"{point} never came:\n{operator.log}"
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"{point} never came:\n{operator.log}") from error
        finally:
            if operator.process.poll() is None:
                operator.kill()
        return journal

    def finish(self, settled: Any, namespaces: list[str]) -> None:
        """Let an undisturbed operator bring machines to rest."""
        operator = RunningOperator(self.plane, self.directory, namespaces, name="finish").start()
        try:
            waiting = set(namespaces)

            def all_settled() -> bool:
                objects = self.objects()
                waiting.difference_update([name for name in waiting if settled(objects.get(name))])
                return not waiting

            eventually(all_settled, lambda: f"{waiting} settle; the operator said:\n{operator.log}")
        finally:
            assert operator.stop() == 0, operator.log

    def settled(self, namespace: str) -> bool:
        """Say whether one machine has come to rest."""
        return self.scenario.settled(self.objects().get(namespace))

    def objects(self) -> dict[str, Object]:
        """Return all machines of this theatre by namespace."""
        by_namespace = {item["metadata"]["namespace"]: item for item in self.api.machines()}
        return {name: by_namespace[name] for name in self.namespaces if name in by_namespace}


@pytest.fixture(params=SCENARIOS, ids=lambda scenario: scenario.name)
def theatre(
    request: pytest.FixtureRequest, cluster: ControlPlane, api: Api, tmp_path: Path
) -> Iterator[Theatre]:
    """One scenario with a host of its own; all its machines are removed in the end."""
    name = "crash-" + request.param.name.replace(" ", "-")
    stage = Theatre(cluster, api, tmp_path, request.param, name)
    stage.prepare_host()
    yield stage
    for namespace in stage.objects():
        stage.api.delete_machine(namespace, NAME)
    stage.finish(lambda obj: obj is None, stage.namespaces)
    stage.api.delete_host(name)


def test_killed_at_any_write_it_ends_as_if_undisturbed(theatre: Theatre) -> None:
    """No machine, address or finalizer is leaked, doubled or lost, wherever the process dies."""
    model = theatre.add_machines(1)[0]
    writes = theatre.play(model, None).read_text().splitlines()
    points = [
        Point(write, int(number), side)
        for number, write in (line.split("|", 1) for line in writes)
        # A host's own writes have a test of their own: they come when its turn does.
        if "hosts" not in write
        for side in ("before", "after")
    ]
    assert len(points) >= 4, writes
    victims = theatre.add_machines(len(points))
    for namespace, point in zip(victims, points, strict=True):
        theatre.play(namespace, point)
    theatre.finish(theatre.scenario.settled, victims)

    objects = theatre.objects()
    expected = comparable(objects.get(model))
    for namespace, point in zip(victims, points, strict=True):
        assert comparable(objects.get(namespace)) == expected, f"killed {point}"
    check_nothing_leaked(theatre, objects)


def comparable(obj: Object | None) -> Object | None:
    """Return an object without what differs from machine to machine and from time to time."""
    if obj is None:
        return None
    status = dict(obj["status"])
    assert status.pop("vmID").startswith("sim-")
    addresses = status.pop("ipAddresses", [])
    for entry in status["conditions"]:
        del entry["lastProbeTime"], entry["lastTransitionTime"]
    status["conditions"] = sorted(status["conditions"], key=lambda entry: str(entry["type"]))
    return {
        "finalizers": obj["metadata"].get("finalizers"),
        "addresses": len(addresses),
        "status": status,
    }


def check_nothing_leaked(theatre: Theatre, objects: dict[str, Object]) -> None:
    """Compare what hosts have with what objects ask for."""
    with World(theatre.directory / "simulation.db") as world:
        machines = world.machines()
    assert sorted(str(machine.uid) for machine in machines) == sorted(
        obj["metadata"]["uid"] for obj in objects.values()
    )
    addresses = [address for machine in machines for address in machine.addresses]
    assert len(set(addresses)) == len(addresses)
