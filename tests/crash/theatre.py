"""Where one scenario is played again and again, and what it is played on."""

import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from api import Api
from crash.knife import Point
from crash.scenarios import Scenario, under_way
from forked import Forked
from machines import condition
from novacron.localcluster.controlplane import ControlPlane
from operators import PATIENCE_SECONDS, RunningOperator, eventually

Object = dict[str, Any]

NAME = "victim"
# Whether an order is given twice is chance; what did not come is tried again.
MORE_TRIES = 2
SECONDS_EACH = 2
# A guest that boots takes so much longer.
BOOT_SECONDS = 20
# A host that is off, and somebody who says so.
OFF = {
    "faults": [
        {"operation": each, "error": "Unreachable"} for each in ("hosts", "machines", "observe")
    ]
}
FENCED = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
# Guests that wait for the others take the CPU from them.
AT_ONCE = 16
# Hosts have two dozen ports for moves, and each takes two of them.
UNDER_WAY_AT_ONCE = 6
BOOTED_AT_ONCE = 8


class Ground(Protocol):
    """A hypervisor: how hosts and machines are declared on it, and what it has in the end."""

    flags: tuple[str, ...]
    beneath: str

    def host(self, name: str, scenario: Scenario, /) -> Object:
        """Return a Host."""

    def machine(self, namespace: str, host: str, scenario: Scenario) -> Object:
        """Return a VirtualMachine on that host."""

    def check_nothing_leaked(self, objects: dict[str, Object]) -> None:
        """Compare what is there with what objects ask for."""


@dataclass(slots=True)
class Theatre:
    """Where one scenario is played again and again."""

    plane: ControlPlane
    api: Api
    directory: Path
    scenario: Scenario
    host: str
    ground: Ground
    namespaces: list[str] = field(default_factory=list)
    missed: list[Point] = field(default_factory=list)

    def prepare_host(self) -> None:
        """Declare the host and have it found ready, so that its writes are not in the way."""
        self.api.create(self.ground.host(self.host, self.scenario))
        if self.scenario.second_host:
            second = self.ground.host(self.second, self.scenario)
            second["spec"]["labels"] = {"test/host": self.host}
            self.api.create(second)
        operator = self.operator(["nowhere"], "host").start()
        try:
            eventually(self.host_is_ready, lambda: f"the host is ready: {operator.log}")
        finally:
            operator.stop()

    def operator(self, namespaces: list[str], name: str) -> RunningOperator:
        """Return an operator that nobody disturbs."""
        flags = ("--no-leader-elect", *self.ground.flags)
        return RunningOperator(self.plane, self.directory, namespaces, flags=flags, name=name)

    @property
    def second(self) -> str:
        """The host that machines may go to."""
        return f"{self.host}-second"

    def hosts(self) -> list[str]:
        """Return all hosts of this theatre."""
        return [self.host, *([self.second] if self.scenario.second_host else [])]

    def host_is_ready(self) -> bool:
        """Say whether each host was found ready."""
        return all(
            condition(self.api.host(name) or {}, "Ready").get("status") == "True"
            for name in self.hosts()
        )

    def turn_on_host(self) -> None:
        """Have happen to the first host what happens to it in this scenario, if anything does."""
        if self.scenario.host_lost:
            self.switch_host(off=True)
        if self.scenario.host_left:
            self.api.patch_host(self.host, {"spec": {"drain": {}}})

    def switch_host(self, *, off: bool) -> None:
        """Have the first host lose its power, or be back."""
        simulation = OFF if off else {"faults": []}
        taints = [FENCED] if off else []
        self.api.patch_host(self.host, {"spec": {"simulation": simulation, "taints": taints}})
        operator = self.operator(["nowhere"], "host").start()
        wanted = "False" if off else "True"
        try:
            eventually(
                lambda: condition(self.api.host(self.host) or {}, "Ready")["status"] == wanted,
                lambda: f"what became of the host is noticed: {operator.log}",
            )
        finally:
            operator.stop()

    def tidy_up(self, namespaces: list[str]) -> None:
        """Have the first host as it was, and what was left on it removed."""
        if self.scenario.host_left:
            self.api.patch_host(self.host, {"spec": {"drain": None}})
        if self.scenario.host_lost:
            self.switch_host(off=False)
            self.finish(
                lambda obj: obj is None or not obj["status"].get("leftoverHosts"), namespaces
            )

    def close_second(self, *, closed: bool) -> None:
        """Have machines begin on the first host."""
        if self.scenario.second_host:
            self.api.patch_host(self.second, {"spec": {"unschedulable": closed}})

    def add_machines(self, count: int) -> list[str]:
        """Bring machines to where the scenario begins, each in a namespace of its own."""
        first = len(self.namespaces)
        new = [f"{self.host}-{first + number}" for number in range(count)]
        self.namespaces += new
        self.close_second(closed=True)
        for name in new:
            self.api.create_namespace(name)
            if self.scenario.exists_before:
                self.api.create(self.machine(name))
        if self.scenario.exists_before:
            self.finish(self.scenario.begins, new)
        self.close_second(closed=False)
        if self.scenario.moving:
            for name in new:
                self.api.patch_machine(name, NAME, self.scenario.moving)
            self.finish(under_way, new)
        return new

    def machine(self, namespace: str) -> Object:
        """Return the machine as it is at the beginning."""
        body = self.ground.machine(namespace, self.host, self.scenario)
        if names := self.scenario.snapshots_before:
            memory = {"memory": True} if self.scenario.with_memory else {}
            body["spec"]["snapshots"] = [{"name": name, **memory} for name in names]
        return body

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
            flags=self.ground.flags,
            program=("crash.operator_under_knife",),
            environment={
                "JOURNAL": str(journal),
                "POINT": str(point or ""),
                "BENEATH": self.ground.beneath,
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
                self._await_death(operator, namespace, point)
        finally:
            if operator.process.poll() is None:
                operator.kill()
        return journal

    def _await_death(self, operator: RunningOperator, namespace: str, point: Point) -> None:
        process = operator.process
        assert process is not None
        eventually(
            lambda: process.poll() is not None or self.settled(namespace),
            lambda: f"{point} never came:\n{operator.log}",
        )
        if process.poll() is None and not _ends(process):
            # Whoever waits for something gives an order again, or does not: chance decides.
            self.missed.append(point)
            assert operator.stop() == 0, operator.log
        else:
            assert process.returncode == -signal.SIGKILL, operator.log

    def finish(self, settled: Any, namespaces: list[str]) -> None:
        """Let an undisturbed operator bring machines to rest."""
        operator = self.operator(namespaces, "finish").start()
        try:
            waiting = set(namespaces)

            def all_settled() -> bool:
                objects = self.objects()
                waiting.difference_update([name for name in waiting if settled(objects.get(name))])
                return not waiting

            eventually(
                all_settled,
                lambda: f"{waiting} settle; the operator said:\n{operator.log}",
                PATIENCE_SECONDS + self._seconds_each * len(namespaces),
            )
        finally:
            assert operator.stop() == 0, operator.log

    @property
    def _seconds_each(self) -> int:
        """How long to wait for what takes long of a machine: itself, snapshots of it, its boot."""
        boot = BOOT_SECONDS if self.scenario.with_agent else 0
        return SECONDS_EACH * (1 + len(self.scenario.snapshots_before)) + boot

    @property
    def _at_once(self) -> int:
        """How many machines to play with at a time."""
        if self.scenario.with_agent:
            return BOOTED_AT_ONCE
        return UNDER_WAY_AT_ONCE if self.scenario.moving else AT_ONCE

    def settled(self, namespace: str) -> bool:
        """Say whether one machine has come to rest."""
        return self.scenario.settled(self.objects().get(namespace))

    def objects(self) -> dict[str, Object]:
        """Return all machines of this theatre by namespace."""
        by_namespace = {item["metadata"]["namespace"]: item for item in self.api.machines()}
        return {name: by_namespace[name] for name in self.namespaces if name in by_namespace}

    def play_all(self) -> None:
        """Kill at every write of the scenario, and compare how each ends."""
        # The first machine of a host also makes what all of them share.
        first, model, like = self.add_machines(3)
        self.turn_on_host()
        self.play(first, None)
        writes = self.play(model, None).read_text().splitlines()
        # How often something is told that goes on for a while depends on how long it takes.
        lasting = set(self.play(like, None).read_text().splitlines())
        self.tidy_up([first, model, like])
        points = [
            Point(write, int(number), side)
            for number, write in (line.split("|", 1) for line in writes if line in lasting)
            if self.counts(write)
            for side in ("before", "after")
        ]
        assert len(points) >= 4, writes
        expected = self.comparable(self.objects().get(model))
        self._kill_at(points, expected)
        for _ in range(MORE_TRIES):
            again, self.missed = self.missed, []
            self._kill_at(again, expected)
        assert len(self.missed) <= len(points) / 10, f"never came: {self.missed}"

    def counts(self, write: str) -> bool:
        """Say whether to kill at a write.

        A host's own writes have a test of their own: they come when its turn does.
        """
        return "hosts" not in write

    def comparable(self, obj: Object | None) -> Object | None:
        """Return an object without what differs from machine to machine and from time to time."""
        return comparable(obj)

    def _kill_at(self, points: list[Point], expected: Object | None) -> None:
        """Play once for each point, some at a time, and see that each ends as it should."""
        size = self._at_once
        for begin in range(0, len(points), size):
            some = points[begin : begin + size]
            cast = dict(zip(self.add_machines(len(some)), some, strict=True))
            self.turn_on_host()
            for namespace, point in cast.items():
                self.play(namespace, point)
            self._compare(cast, expected)
            self.remove(list(cast))

    def _compare(self, cast: dict[str, Point], expected: Object | None) -> None:
        """Let those who died come to their end, and compare that with another's."""
        self.finish(self.scenario.settled, list(cast))
        self.tidy_up(list(cast))
        objects = self.objects()
        for namespace, point in cast.items():
            found = self.comparable(objects.get(namespace))
            assert found == expected, f"killed {point}: {found} instead of {expected}"
        self.ground.check_nothing_leaked(objects)

    def remove(self, namespaces: list[str]) -> None:
        """Remove machines, and wait until they are gone."""
        there = [name for name in self.objects() if name in namespaces]
        for namespace in there:
            self.api.delete_machine(namespace, NAME)
        if there:
            self.finish(lambda obj: obj is None, there)

    def clear(self) -> None:
        """Remove all machines and the host."""
        self.remove(self.namespaces)
        for name in self.hosts():
            self.api.delete_host(name)


def _ends(process: Forked) -> bool:
    """Say whether a process ends within a moment: the last write may follow what is seen."""
    try:
        process.wait(2)
    except subprocess.TimeoutExpired:
        return False
    return True


def check_kept(volumes: set[str], objects: dict[str, Object], begun: dict[str, Scenario]) -> None:
    """See that of machines that are gone exactly those volumes are left which were to stay."""
    gone = {name: scenario for name, scenario in begun.items() if name not in objects}
    expected = {
        f"{name}.{NAME}.{volume}" for name, scenario in gone.items() for volume in scenario.kept
    }
    assert {volume.rpartition("-")[0] for volume in volumes} == expected
    assert len(volumes) == len(expected)


def comparable(obj: Object | None) -> Object | None:
    """Return an object without what differs from machine to machine and from time to time."""
    if obj is None:
        return None
    status = dict(obj["status"])
    assert status.pop("vmID")
    addresses = status.pop("ipAddresses", [])
    for entry in status["resources"].values():
        entry.pop("used", None)
    status["migration"] = _lasting(status.get("migration") or {})
    for entry in status["conditions"]:
        if entry["type"] == "Placed":
            del entry["message"]  # it tells what else was on the host at that moment
    without_moments(status)
    if volumes := status.get("volumes"):
        # The rest of an id is the machine's own.
        status["volumes"] = [{**entry, "id": entry["id"][:-8]} for entry in volumes]
    return {
        "finalizers": obj["metadata"].get("finalizers"),
        "addresses": len(addresses),
        "devices": len(status.pop("devices", [])),
        "status": status,
    }


def without_moments(status: Object) -> None:
    """Take out of a status when things were, and put its conditions in order."""
    for entry in status["conditions"]:
        del entry["lastProbeTime"], entry["lastTransitionTime"]
    status["conditions"] = sorted(status["conditions"], key=lambda entry: str(entry["type"]))
    for entry in status.get("snapshots") or ():
        assert entry.pop("createdAt")
        assert entry.pop("size")
    if restored := status.get("restore"):
        assert restored.pop("completedAt")


# What differs from move to move; a real one sends as many bytes as the guest changes meanwhile.
PASSING = {"id", "startTime", "endTime", "transferredBytes", "downtimeMilliseconds"}


def _lasting(migration: Object) -> Object:
    return {k: v for k, v in migration.items() if k not in PASSING}
