"""What commands cost beside other commands, however fast the machine is."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

__all__ = ["cost_beside_python", "starting"]


def starting(*modules: str) -> list[str]:
    """Return a Python that loads these and ends: what a command cannot do without."""
    return [sys.executable, "-c", f"import {', '.join(modules)}"]


def cost_beside_python(
    command: Sequence[str], peer: Sequence[str], environment: Mapping[str, str]
) -> float:
    """Return how many times the CPU of a peer a command takes: the least of each, taken in turn."""
    pairs = [(_seconds(command, environment), _seconds(peer, environment)) for _ in range(5)]
    ours, theirs = zip(*pairs, strict=True)
    return min(ours) / min(theirs)


def _seconds(command: Sequence[str], environment: Mapping[str, str]) -> float:
    """Run a command that must succeed; only its own time is counted, no other child's."""
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, env=environment, stdin=quiet, stdout=quiet, stderr=quiet)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return usage.ru_utime + usage.ru_stime
