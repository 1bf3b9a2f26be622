"""How long a user waits for our command, and a cluster for our operator to be ready."""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from bench.cluster import throwaway_cluster
from bench.contenders import OURS, Unavailable
from bench.report import at_most, conclude

__all__ = ["main", "measure_starts"]

COMMAND = (str(Path(sys.executable).with_name("novacron")), "version")
COMMAND_RUNS = 7
OPERATOR_RUNS = 3


def measure_starts() -> bool:
    """Start both several times, print and keep the figures; say whether the bars are held."""
    try:
        OURS.prepare()
    except Unavailable as unavailable:
        print(f"{OURS.name} was not measured: {unavailable}")
        return False
    # Noise only ever adds to CPU time, so the least is the truest.
    command_cpu_s = [_cpu_s(COMMAND) for _ in range(COMMAND_RUNS)]
    ready_s = _ready_s()
    bars = [
        at_most("`novacron version`, CPU s, best", min(command_cpu_s), 0.3),
        at_most("operator ready, s, median", median(ready_s), 3),
    ]
    return conclude("starts", {"command_cpu_s": command_cpu_s, "ready_s": ready_s}, bars)


def _cpu_s(command: Sequence[str]) -> float:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return used.ru_utime + used.ru_stime


def _ready_s() -> list[float]:
    with throwaway_cluster() as cluster:
        times = []
        for _ in range(OPERATOR_RUNS):
            with cluster.running(OURS) as operator:
                times.append(operator.ready_s)
        return times


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(prog="python -m bench.cli_import", description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail when a bar is missed")
    given = parser.parse_args(arguments)
    held = measure_starts()
    return 0 if held or not given.check else 1


if __name__ == "__main__":
    sys.exit(main())
