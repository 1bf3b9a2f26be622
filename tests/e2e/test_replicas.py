"""Several operator processes on one cluster: one places, all work, and any may die."""

import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from api import Api
from machines import condition, host, virtual_machine
from novacron.drivers.simulation import World
from novacron.localcluster.controlplane import ControlPlane
from operators import RunningOperator, eventually

LEASE = "/apis/coordination.k8s.io/v1/namespaces/novacron-system/leases"


class Replicas:
    """Processes that share the machines of one namespace."""

    def __init__(self, plane: ControlPlane, api: Api, directory: Path, count: int) -> None:
        self.api = api
        self.directory = directory
        self.namespace = f"replicas-{uuid4().hex[:8]}"
        api.create_namespace(self.namespace)
        self.processes = [
            RunningOperator(
                plane,
                directory,
                [self.namespace],
                flags=("--leader-elect", f"--shards={count}"),
                name=f"replica-{number}",
            )
            for number in range(count)
        ]

    def start(self) -> None:
        """Start all of them and wait until the shards are shared out."""
        for replica in self.processes:
            replica.start(wait=False)
        for replica in self.processes:
            eventually(replica.ready, lambda log=replica: log.log)
        eventually(lambda: len(set(self.shards().values())) == len(self.processes), self.logs)

    def shards(self) -> dict[str, str]:
        """Return who holds which shard."""
        return {
            lease["metadata"]["name"]: lease["spec"].get("holderIdentity") or ""
            for lease in self.api.call("GET", LEASE)["items"]
            if "-shard-" in lease["metadata"]["name"]
        }

    def leader(self) -> RunningOperator:
        """Return the process that leads."""
        found: list[RunningOperator] = []

        def one_leads() -> bool:
            found[:] = [replica for replica in self.alive() if self.leads(replica)]
            return len(found) == 1

        eventually(one_leads, self.logs)
        return found[0]

    def alive(self) -> list[RunningOperator]:
        """Return those that still run."""
        return [one for one in self.processes if one.process and one.process.poll() is None]

    @staticmethod
    def leads(replica: RunningOperator) -> bool:
        """Ask a process whether it leads."""
        return 'novacron_lease_held{claim="leader"} 1.0' in (
            replica.get("metrics", "/metrics") or ""
        )

    def all_running(self, count: int) -> bool:
        """Say whether so many machines are Ready."""
        machines = self.api.machines(self.namespace)
        ready = [obj for obj in machines if condition(obj, "Ready").get("status") == "True"]
        return len(ready) == count

    def logs(self) -> str:
        """Return what all of them said."""
        return "\n".join(f"{one.name}:\n{one.log}" for one in self.processes)


@pytest.fixture
def replicas(cluster: ControlPlane, api: Api, tmp_path: Path) -> Iterator[Replicas]:
    """Three processes; all machines are removed in the end."""
    group = Replicas(cluster, api, tmp_path, 3)
    group.start()
    yield group
    for obj in api.machines(group.namespace):
        api.delete_machine(group.namespace, obj["metadata"]["name"])
    eventually(lambda: not api.machines(group.namespace), group.logs)
    for replica in group.alive():
        assert replica.stop() == 0, replica.log


def test_three_share_the_machines_and_two_go_on_when_the_leader_dies(
    replicas: Replicas, api: Api
) -> None:
    """Full hosts are filled exactly once, before and after the hand-over."""
    names = [f"{replicas.namespace}-{letter}" for letter in "ab"]
    for name in names:
        api.create(host(name, cpu=20, labels={"group": replicas.namespace}))
    for number in range(25):
        api.create(wanting(replicas.namespace, number))
    eventually(lambda: replicas.all_running(25), replicas.logs)
    for replica in replicas.processes:
        assert "started on host" in replica.log, f"{replica.name} had nothing to do"

    killed_at = time.monotonic()
    replicas.leader().kill()
    for number in range(25, 45):  # five more than fit
        api.create(wanting(replicas.namespace, number))
    eventually(lambda: replicas.all_running(40), replicas.logs)
    assert time.monotonic() - killed_at < 60
    time.sleep(2)
    assert replicas.all_running(40)
    check_nothing_doubled(replicas, names)

    for name in names:
        api.delete_host(name)


def wanting(namespace: str, number: int) -> dict[str, object]:
    """Return a machine that takes one CPU of either host."""
    return virtual_machine(f"vm-{number}", namespace, nodeSelector={"group": namespace})


def check_nothing_doubled(replicas: Replicas, hosts: list[str]) -> None:
    """Each machine exists once, on the host its object names, and no host has too many."""
    with World(replicas.directory / "simulation.db") as world:
        machines = world.machines()
    placed = {
        obj["metadata"]["uid"]: obj["status"].get("nodeName")
        for obj in replicas.api.machines(replicas.namespace)
        if "nodeName" in obj.get("status", {})
    }
    assert {str(machine.uid): machine.host for machine in machines} == placed
    assert len(machines) == len(placed) == 40
    for name in hosts:
        assert sum(machine.host == name for machine in machines) == 20
