"""Many Machines of the Viti Stack on a real KubeVirt, and what they cost the operator.

KubeVirt's control plane and the stand-in for its nodes run on the same cores: how long it takes
until all machines run is theirs to say, not the operator's. So its CPU is held against that of
virt-controller, which does for the same machines what follows.
"""

import argparse
import json
import signal
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from bench.measure import usage
from bench.report import at_most, conclude
from novacron.app.definitions import crds
from novacron.localcluster.binaries import locate
from novacron.localcluster.controlplane import ControlPlane, Options
from novacron.localcluster.kubevirt.addition import KubeVirt
from novacron.localcluster.kubevirt.binaries import locate as locate_kubevirt
from novacron.localcluster.kubevirt.flags import FLAGS
from novacron.localcluster.kubevirt.names import CONTROLLER, PROGRAMS
from novacron.localcluster.processes import Program
from novacron.workplace.home import Home
from novacron.workplace.progress import Silent

__all__ = ["main", "measure_machines"]

MACHINES = 500
PATIENCE_S = 3600.0
QUIET_S = 20.0
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
OPERATOR, METRICS, HEALTH = "operator", 18080, 18081
READS, WATCH = ("get", "list"), "watch"


@dataclass(frozen=True, slots=True)
class Spent:
    """What the operator spent so far."""

    writes: int
    reads: int
    rounds: int
    cpu_s: float
    peak_mib: float


def measure_machines(count: int = MACHINES) -> bool:
    """Bring Machines up, watch nothing happen, restart; say whether the bars are held."""
    with _kubevirt() as plane:
        with _operator(plane):
            before, others = _spent(plane), _others(plane)
            _declare(plane, count)
            begun = time.monotonic()
            _until_running(count)
            took = time.monotonic() - begun
            _until_quiet(plane)
            up = _spent(plane)
            beside = {name: cpu - others[name] for name, cpu in _others(plane).items()}
            time.sleep(QUIET_S)
            idle = _spent(plane)
        with _operator(plane):
            while _spent(plane).rounds < count:
                time.sleep(1)
            time.sleep(QUIET_S)
            again = _spent(plane)
    ours = up.cpu_s - before.cpu_s
    figures = {
        "machines": count,
        "until_all_run_s": took,
        "cpu_ms_per_machine": ours / count * 1000,
        "cpu_s_of_others": beside,
        "up": asdict(up),
        "idle": asdict(idle),
        "restarted": asdict(again),
    }
    return conclude(
        "kubevirt-scale",
        figures,
        [
            # Beyond the one claim that each has.
            at_most("writes per Machine", (up.writes - before.writes) / count - 1, 6),
            at_most("CPU in s, at most virt-controller's", ours, beside[CONTROLLER]),
            at_most("requests while nothing changes", _requests(idle) - _requests(up), 0),
            at_most("writes after a restart", again.writes, 0),
        ],
    )


def _others(plane: ControlPlane) -> dict[str, float]:
    """Return the CPU time that everybody else has taken so far."""
    found = {name: plane.processes.running(name) for name in (*COMPONENTS, *PROGRAMS)}
    return {name: usage(each.pid).cpu_s for name, each in found.items() if each is not None}


def _requests(spent: Spent) -> int:
    return spent.writes + spent.reads


@contextmanager
def _kubevirt() -> Iterator[ControlPlane]:
    """Start a control plane with KubeVirt and our kinds; nothing of it is left afterwards."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    cache = Home.default().cache
    with tempfile.TemporaryDirectory(prefix="novacron-bench-") as directory:
        options = Options(components=COMPONENTS, fsync=False, extra_flags=FLAGS)
        plane = ControlPlane(Path(directory), locate(cache, None, Silent()), options)
        kubevirt = KubeVirt(plane, locate_kubevirt(cache, Silent()))
        try:
            plane.start()
            kubevirt.start()
            text = yaml.safe_dump_all(crds(["all"]))
            plane.kubectl("apply", "--server-side", "-f", "-", input=text)
            plane.kubectl("wait", "crd", "--all", "--for=condition=Established")
            yield plane
        finally:
            kubevirt.stop()
            plane.stop()


@contextmanager
def _operator(plane: ControlPlane) -> Iterator[None]:
    command = (sys.executable, "-m", "novacron.app.entry", "operator", "run", "--families=viti")
    flags = (
        "--no-leader-elect",
        "--webhook-bind-addr=0",
        f"--kubeconfig={plane.kubeconfig}",
        f"--metrics-bind-addr=127.0.0.1:{METRICS}",
        f"--health-probe-bind-addr=127.0.0.1:{HEALTH}",
    )
    plane.processes.start(Program(OPERATOR, (*command, *flags)))
    try:
        while not _answer(HEALTH, "/readyz"):
            time.sleep(0.1)
        yield
    finally:
        plane.processes.stop(OPERATOR)


def _answer(port: int, path: str) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            text: str = answer.read().decode()
            return text
    except OSError:
        return ""


def _spent(plane: ControlPlane) -> Spent:
    process = plane.processes.running(OPERATOR)
    assert process is not None
    counted: dict[str, float] = {}
    rounds = 0.0
    for line in _answer(METRICS, "/metrics").splitlines():
        name, _, value = line.rpartition(" ")
        if name.startswith("novacron_api_requests_total"):
            verb = name.partition('verb="')[2].partition('"')[0]
            counted[verb] = counted.get(verb, 0) + float(value)
        elif name.startswith("kubevirt_operator_reconciliation_duration_seconds_count"):
            rounds += float(value)
    reads = sum(counted.get(verb, 0) for verb in READS)
    writes = sum(counted.values()) - reads - counted.get(WATCH, 0)
    took = usage(process.pid)
    return Spent(int(writes), int(reads), int(rounds), took.cpu_s, took.peak_mib)


def _declare(plane: ControlPlane, count: int) -> None:
    items = [
        {
            "apiVersion": "vitistack.io/v1alpha1",
            "kind": "Machine",
            "metadata": {"name": f"m{number}", "namespace": "default"},
            "spec": {"template": "small"},
        }
        for number in range(count)
    ]
    body: dict[str, Any] = {"apiVersion": "v1", "kind": "List", "items": items}
    plane.kubectl("create", "-f", "-", input=json.dumps(body))


def _until_running(count: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    running = f'{{phase="Running",template="small"}} {float(count)}'
    while running not in _answer(METRICS, "/metrics"):
        if time.monotonic() > deadline:
            raise RuntimeError(f"not all {count} Machines run after {PATIENCE_S:.0f} s")
        time.sleep(1)


def _until_quiet(plane: ControlPlane) -> None:
    """Wait until nothing was asked for a while: events trickle, and KubeVirt says more."""
    known, since = _requests(_spent(plane)), time.monotonic()
    while time.monotonic() - since < QUIET_S:
        time.sleep(1)
        if (now := _requests(_spent(plane))) != known:
            known, since = now, time.monotonic()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it alone."""
    parser = argparse.ArgumentParser(prog="python -m bench.kubevirt_scale", description=__doc__)
    parser.add_argument("--machines", type=int, default=MACHINES)
    parser.add_argument("--check", action="store_true", help="fail when a bar is missed")
    given = parser.parse_args(arguments)
    held = measure_machines(given.machines)
    return 0 if held or not given.check else 1


if __name__ == "__main__":
    sys.exit(main())
