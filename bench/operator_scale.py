"""An operator with 20,000 machines that all run: how much it holds, and what doing nothing costs.

The operator brings the machines to Running itself, is stopped, and is started again: so the
figures are those of a process that finds its work done.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta

from bench.cluster import Cluster, Operator, throwaway_cluster
from bench.contenders import CONTENDERS, OURS, Contender, Unavailable
from bench.measure import Write
from bench.report import at_most, conclude, show_table
from bench.trial import bring_to_running, named

__all__ = ["main", "measure_scale"]

MACHINES = 20_000
IDLE = timedelta(seconds=60)
# After its start an operator looks at every machine once; idle begins when that is over.
WINDOW = timedelta(seconds=5)
QUIET_SHARE = 0.05
QUIET_WITHIN = timedelta(minutes=3)


@dataclass(frozen=True, slots=True)
class Scale:
    """What the operator took with all machines there."""

    contender: str
    machines: int
    running_s: float
    filled_peak_mib: float
    ready_s: float
    settled_s: float
    settled_cpu_s: float
    peak_mib: float
    resident_mib: float
    idle_cpu_percent: float
    start_writes: dict[str, int]
    idle_writes: dict[str, int]


def measure_scale(
    contender: Contender = OURS, machines: int = MACHINES, idle: timedelta = IDLE
) -> bool:
    """Fill a cluster, restart the operator, watch it do nothing; say whether the bars are held."""
    try:
        contender.prepare()
    except Unavailable as unavailable:
        print(f"{contender.name} was not measured: {unavailable}")
        return False
    with throwaway_cluster() as cluster:
        with cluster.running(contender) as operator:
            running_s, _ = bring_to_running(cluster, operator, machines)
            filled_peak_mib = operator.usage.peak_mib
        before = cluster.writes()
        with cluster.running(contender) as operator:
            settled_s = _settle(operator)
            settled_cpu_s, settled = operator.usage.cpu_s, cluster.writes()
            idle_cpu_percent, idle_writes = _idle(cluster, operator, idle)
            ended = operator.usage
    scale = Scale(
        contender=contender.name,
        machines=machines,
        running_s=running_s,
        filled_peak_mib=filled_peak_mib,
        ready_s=operator.ready_s,
        settled_s=operator.ready_s + settled_s,
        settled_cpu_s=settled_cpu_s,
        peak_mib=ended.peak_mib,
        resident_mib=ended.resident_mib,
        idle_cpu_percent=idle_cpu_percent,
        start_writes=named(settled - before),
        idle_writes=named(idle_writes),
    )
    return _report(scale)


def _settle(operator: Operator) -> float:
    """Return after how long the operator had become quiet."""
    begun = time.monotonic()
    while time.monotonic() - begun < QUIET_WITHIN.total_seconds():
        before = operator.usage.cpu_s
        time.sleep(WINDOW.total_seconds())
        operator.check_alive()
        if operator.usage.cpu_s - before <= QUIET_SHARE * WINDOW.total_seconds():
            return time.monotonic() - begun - WINDOW.total_seconds()
    raise RuntimeError(f"{operator.name} does not come to rest:\n{operator.tail}")


def _idle(cluster: Cluster, operator: Operator, idle: timedelta) -> tuple[float, Counter[Write]]:
    writes, cpu_s, begun = cluster.writes(), operator.usage.cpu_s, time.monotonic()
    time.sleep(idle.total_seconds())
    operator.check_alive()
    percent = 100 * (operator.usage.cpu_s - cpu_s) / (time.monotonic() - begun)
    return percent, cluster.writes() - writes


def _report(scale: Scale) -> bool:
    figures = (
        ("all Running after s", scale.running_s),
        ("peak MiB while filling", scale.filled_peak_mib),
        ("restarted: ready after s", scale.ready_s),
        ("restarted: at rest after s", scale.settled_s),
        ("restarted: CPU s until at rest", scale.settled_cpu_s),
        ("restarted: writes until at rest", sum(scale.start_writes.values())),
        ("peak MiB", scale.peak_mib),
        ("resident MiB", scale.resident_mib),
        ("idle, % of one core", scale.idle_cpu_percent),
        ("idle, writes", sum(scale.idle_writes.values())),
    )
    title = f"{scale.contender} with {scale.machines} machines"
    show_table(title, ("", "measured"), [(name, f"{value:.2f}") for name, value in figures])
    bars = [
        at_most("peak MiB while filling", scale.filled_peak_mib, 250),
        at_most("peak MiB after a restart", scale.peak_mib, 250),
        at_most("idle, % of one core", scale.idle_cpu_percent, 2),
        at_most("idle, writes", sum(scale.idle_writes.values()), 0),
    ]
    return conclude("scale", asdict(scale), bars)


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(prog="python -m bench.operator_scale", description=__doc__)
    parser.add_argument("--machines", type=int, default=MACHINES)
    parser.add_argument("--idle-seconds", type=float, default=IDLE.total_seconds())
    parser.add_argument("--contender", choices=CONTENDERS, default=OURS.name)
    parser.add_argument("--check", action="store_true", help="fail when a bar is missed")
    given = parser.parse_args(arguments)
    idle = timedelta(seconds=given.idle_seconds)
    held = measure_scale(CONTENDERS[given.contender], given.machines, idle)
    return 0 if held or not given.check else 1


if __name__ == "__main__":
    sys.exit(main())
