"""The operator is killed right before and right after each of its writes, and started again.

One undisturbed run of a scenario tells all its writes. Then each gets a machine of its own in a
namespace of its own; an operator that sees only this one is killed at the write; and in the end
one undisturbed operator finishes all of them. Each must end like the undisturbed one, and the
simulated hosts must have exactly the machines that objects ask for.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from api import Api
from crash.scenarios import SCENARIOS, Scenario, snapshots
from crash.theatre import NAME, Theatre, check_kept
from machines import host, virtual_machine
from novacron.drivers.simulation import World
from novacron.localcluster.controlplane import ControlPlane

Object = dict[str, Any]

# The others have more writes to die at, so they take longer.
EVERYDAY = frozenset(
    {
        "create",
        "create slowly",
        "resize",
        "stop",
        "start",
        "delete",
        "delete slowly",
        "change volumes",
        "delete with volumes",
    }
)


def world_snapshots(directory: Path, uid: str) -> set[str]:
    """Return the names of the snapshots that a machine really has."""
    with closing(sqlite3.connect(directory / "simulation.db")) as file:
        rows = file.execute(
            "SELECT snapshots.name FROM snapshots JOIN machines ON number = machine WHERE uid = ?",
            (uid,),
        ).fetchall()
    return {name for (name,) in rows}


@dataclass(frozen=True, slots=True)
class Simulated:
    """Hosts and machines in a simulation file."""

    directory: Path
    flags: tuple[str, ...] = ()
    beneath: str = ""
    begun: dict[str, Scenario] = field(default_factory=dict)

    def host(self, name: str, scenario: Scenario) -> Object:
        return host(name, simulation=scenario.simulation)

    def machine(self, namespace: str, host: str, scenario: Scenario) -> Object:
        # Each operator under the knife sees one machine only, so each machine asks for its own.
        model = f"model-{namespace.rpartition('-')[2]}"
        asked = {"devices": [{"type": "gpu", "model": model}]} if scenario.with_device else {}
        self.begun[namespace] = scenario
        return virtual_machine(
            NAME,
            namespace,
            cpu=2,
            running=scenario.running_before,
            on=host,
            **asked,
            volumes=list(scenario.volumes),
            **scenario.template,
        )

    def check_nothing_leaked(self, objects: dict[str, Object]) -> None:
        with World(self.directory / "simulation.db") as world:
            machines, devices = world.machines(), world.devices()
            kept = {f"{each.namespace}.{each.id}" for each in world.kept_volumes()}
        check_kept(kept, objects, self.begun)
        assert sorted(str(machine.uid) for machine in machines) == sorted(
            obj["metadata"]["uid"] for obj in objects.values()
        )
        for obj in objects.values():
            assert world_snapshots(self.directory, obj["metadata"]["uid"]) == snapshots(obj)
        addresses = [address for machine in machines for address in machine.addresses]
        assert len(set(addresses)) == len(addresses)
        assert sorted(devices.items()) == sorted(
            ((obj["status"]["nodeName"], device["address"]), obj["metadata"]["uid"])
            for obj in objects.values()
            for device in obj["status"].get("devices") or ()
        )


@pytest.fixture(
    params=[
        pytest.param(each, marks=[] if each.name in EVERYDAY else [pytest.mark.full], id=each.name)
        for each in SCENARIOS
    ]
)
def theatre(
    request: pytest.FixtureRequest, cluster: ControlPlane, api: Api, tmp_path: Path
) -> Iterator[Theatre]:
    """One scenario with a host of its own; all its machines are removed in the end."""
    name = "crash-" + request.param.name.replace(" ", "-")
    flags = ("--host-failure-grace=1s",)
    stage = Theatre(cluster, api, tmp_path, request.param, name, Simulated(tmp_path, flags))
    stage.prepare_host()
    yield stage
    stage.clear()


def test_killed_at_any_write_it_ends_as_if_undisturbed(theatre: Theatre) -> None:
    """No machine, address or finalizer is leaked, doubled or lost, wherever the process dies."""
    theatre.play_all()
