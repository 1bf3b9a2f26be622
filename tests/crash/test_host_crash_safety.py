"""The operator is killed at each of its writes about a host, and started again.

Hosts belong to the whole cluster, so every operator here sees all of them; a write is told apart
by the host's name in it. One undisturbed run tells the writes, then each gets a host of its own.
"""

import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from api import Api
from crash.knife import Point
from machines import condition, host
from novacron.localcluster.controlplane import ControlPlane
from operators import RunningOperator, eventually

Object = dict[str, Any]

NOBODY = ["nowhere"]  # no machine's namespace: only hosts are at stake
LARGER = {"spec": {"simulation": {"capacity": {"cpu": 99}}}}
UNPLUGGED = {"spec": {"simulation": {"faults": [{"operation": "hosts", "error": "Unreachable"}]}}}


def ready(obj: Object | None) -> bool:
    """It was found ready, and is held by our finalizer."""
    return (
        obj is not None
        and condition(obj, "Ready").get("status") == "True"
        and bool(obj["metadata"].get("finalizers"))
    )


def grown(obj: Object | None) -> bool:
    """Its new size is known."""
    return ready(obj) and obj is not None and obj["status"]["capacity"]["cpu"] == 99


def silent(obj: Object | None) -> bool:
    """It was found not to answer."""
    return obj is not None and condition(obj, "Ready").get("status") == "False"


def gone(obj: Object | None) -> bool:
    """Nothing of it is left."""
    return obj is None


@dataclass(frozen=True, slots=True)
class Scenario:
    """One thing a user does to a host; without a patch it is a deletion."""

    name: str
    settled: Callable[[Object | None], bool]
    exists_before: bool = True
    patch: Object | None = None


SCENARIOS = (
    Scenario("declare", ready, exists_before=False),
    Scenario("grow", grown, patch=LARGER),
    Scenario("unplug", silent, patch=UNPLUGGED),
    Scenario("remove", gone),
)


@dataclass(slots=True)
class Stage:
    """Where one scenario is played again and again."""

    plane: ControlPlane
    api: Api
    directory: Path
    scenario: Scenario
    hosts: list[str] = field(default_factory=list)

    def add_host(self, name: str) -> None:
        """Bring a host to where the scenario begins."""
        self.hosts.append(name)
        if self.scenario.exists_before:
            self.api.create(host(name))
            self.finish(ready, [name])

    def act(self, name: str) -> None:
        """Do what the user does."""
        if not self.scenario.exists_before:
            self.api.create(host(name))
        elif self.scenario.patch is None:
            self.api.delete_host(name)
        else:
            self.api.patch_host(name, self.scenario.patch)

    def play(self, name: str, point: Point | None) -> list[str]:
        """Run the scenario under the knife; return the journal of its writes."""
        journal = self.directory / f"{name}.journal"
        journal.touch()
        operator = RunningOperator(
            self.plane,
            self.directory,
            NOBODY,
            flags=(),
            program=("crash.operator_under_knife",),
            environment={
                "JOURNAL": str(journal),
                "POINT": str(point or ""),
            },
            name=name,
        )
        self.act(name)
        operator.start(wait=False)
        assert operator.process is not None
        if point is None:
            eventually(lambda: self.scenario.settled(self.api.host(name)), lambda: operator.log)
            assert operator.stop() == 0, operator.log
        else:
            died = operator.process.wait(60)
            assert died == -signal.SIGKILL, f"{point} never came:\n{operator.log}"
        return journal.read_text().splitlines()

    def finish(self, settled: Callable[[Object | None], bool], names: list[str]) -> None:
        """Let an undisturbed operator bring hosts to rest."""
        operator = RunningOperator(self.plane, self.directory, NOBODY, name="finish").start()
        try:
            eventually(
                lambda: all(settled(self.api.host(name)) for name in names),
                lambda: f"{names} settle; the operator said:\n{operator.log}",
            )
        finally:
            assert operator.stop() == 0, operator.log


@pytest.fixture(params=SCENARIOS, ids=lambda scenario: scenario.name)
def stage(
    request: pytest.FixtureRequest, cluster: ControlPlane, api: Api, tmp_path: Path
) -> Iterator[Stage]:
    """One scenario; all its hosts are removed in the end."""
    stage = Stage(cluster, api, tmp_path, request.param)
    yield stage
    left = [name for name in stage.hosts if api.host(name)]
    for name in left:
        api.delete_host(name)
    stage.finish(gone, left)


def test_killed_at_any_write_about_a_host_it_ends_as_if_undisturbed(stage: Stage) -> None:
    """A host that lost its finalizer half-way could vanish under its machines, or never go."""
    prefix = f"knife-{stage.scenario.name}"
    model = f"{prefix}-model"
    stage.add_host(model)
    lines = (line.split("|", 1) for line in stage.play(model, None))
    about_it = [(int(number), write) for number, write in lines if model in write.split("/")]
    assert about_it
    expected = comparable(stage.api.host(model))

    for index, (number, write) in enumerate(about_it):
        for side in ("before", "after"):
            name = f"{prefix}-{index}-{side}"
            stage.add_host(name)
            stage.play(name, Point(write.replace(model, name), number, side))
            stage.finish(stage.scenario.settled, [name])
            found = comparable(stage.api.host(name))
            assert found == expected, f"killed {side} {write} number {number}"


def comparable(obj: Object | None) -> Object | None:
    """Return a host without what differs from one to the next and from time to time."""
    if obj is None:
        return None
    status = {name: value for name, value in obj["status"].items() if name != "lastSeen"}
    for entry in status["conditions"]:
        del entry["lastProbeTime"], entry["lastTransitionTime"]
        entry["message"] = entry["message"].replace(obj["metadata"]["name"], "NAME")
    return {"finalizers": obj["metadata"].get("finalizers"), "status": status}
