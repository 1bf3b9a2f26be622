"""One operator, one clean cluster, one load: what it took to bring every machine to Running."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from bench.cluster import Cluster, Operator, throwaway_cluster
from bench.contenders import Contender
from bench.measure import Write, busy_s, operator_writes

__all__ = ["Round", "bring_to_running", "named", "rate_round"]

REPOSITORY = Path(__file__).parent.parent
POLL_S = 0.1
# What an operator still does after the last machine runs (echoes of its writes) is billed too.
SETTLE = timedelta(seconds=2)
PATIENCE = timedelta(seconds=60)
SLOWEST_PER_S = 10


@dataclass(frozen=True, slots=True)
class Round:
    """What one contender took for one load."""

    contender: str
    machines: int
    running_s: float
    created_s: float
    cpu_s: float
    start_cpu_s: float
    ready_s: float
    peak_mib: float
    server_cpu_s: float
    others_share: float
    writes_per_machine: float
    writes: dict[str, int]
    deleted_s: float | None = None

    @property
    def rate(self) -> float:
        """Return machines per second, from the first create to the last that runs."""
        return self.machines / self.running_s

    @property
    def cpu_ms(self) -> float:
        """Return the operator's CPU time per machine."""
        return self.cpu_s * 1000 / self.machines

    @property
    def server_cpu_ms(self) -> float:
        """Return the API server's CPU time per machine, the load's share included."""
        return self.server_cpu_s * 1000 / self.machines


@dataclass(frozen=True, slots=True)
class Account:
    """Who has taken how much CPU time up to a moment."""

    operator_s: float
    server_s: float
    ours_s: float
    machine_s: float
    at: float

    @classmethod
    def read(cls, cluster: Cluster, operator: Operator) -> "Account":
        """Read every counter."""
        spent = os.times()
        operator_s, server_s = operator.usage.cpu_s, cluster.cpu_s("kube-apiserver")
        ours_s = operator_s + server_s + cluster.cpu_s("etcd") + sum(spent[:4])
        return cls(operator_s, server_s, ours_s, busy_s(), time.monotonic())

    def others_share(self, before: "Account") -> float:
        """Return the share of the machine that went to processes not of this benchmark."""
        others_s = (self.machine_s - before.machine_s) - (self.ours_s - before.ours_s)
        capacity_s = (self.at - before.at) * (os.cpu_count() or 1)
        return max(others_s, 0) / capacity_s


def rate_round(contender: Contender, count: int, *, delete: bool) -> Round:
    """Measure the contender on a cluster of its own."""
    with throwaway_cluster() as cluster, cluster.running(contender) as operator:
        cluster.prove()
        writes, before = cluster.writes(), Account.read(cluster, operator)
        running_s, created_s = bring_to_running(cluster, operator, count)
        time.sleep(SETTLE.total_seconds())
        after, peak_mib = Account.read(cluster, operator), operator.usage.peak_mib
        written = cluster.writes() - writes
        deleted_s = _run_load(cluster, operator, "delete", count)[0] if delete else None
        return Round(
            contender=contender.name,
            machines=count,
            running_s=running_s,
            created_s=created_s,
            cpu_s=after.operator_s - before.operator_s,
            start_cpu_s=before.operator_s,
            ready_s=operator.ready_s,
            peak_mib=peak_mib,
            server_cpu_s=after.server_s - before.server_s,
            others_share=after.others_share(before),
            writes_per_machine=operator_writes(written) / count,
            writes=named(written),
            deleted_s=deleted_s,
        )


def named(written: Counter[Write]) -> dict[str, int]:
    """Return the counts under the names a reader knows, largest first."""
    return {str(write): number for write, number in written.most_common()}


def bring_to_running(cluster: Cluster, operator: Operator, count: int) -> tuple[float, float]:
    """Create machines; return after how long all ran and after how long all were created."""
    return _run_load(cluster, operator, "create", count)


def _run_load(cluster: Cluster, operator: Operator, action: str, count: int) -> tuple[float, float]:
    goal = {"create": "running", "delete": "deleted"}[action]
    arguments = (str(cluster.kubeconfig), str(count))
    deadline = time.monotonic() + PATIENCE.total_seconds() + count / SLOWEST_PER_S
    with _module("bench.watch", goal, *arguments) as watcher:
        _line(watcher)
        with _module("bench.load", action, *arguments) as load:
            _wait([load, watcher], operator, deadline)
            sent = json.loads(_line(load))
        done = json.loads(_line(watcher))["done"]
    return done - sent["first"], sent["last"] - sent["first"]


@contextmanager
def _module(name: str, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", name, *arguments]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def _line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"{process.args!r} ended without an answer")
    return line


def _wait(parts: list["subprocess.Popen[str]"], operator: Operator, deadline: float) -> None:
    while any(part.poll() is None for part in parts):
        operator.check_alive()
        if any(part.returncode for part in parts):
            raise RuntimeError("the load failed; see its message above")
        if time.monotonic() > deadline:
            raise RuntimeError(f"{operator.name} left machines behind:\n{operator.tail}")
        time.sleep(POLL_S)
