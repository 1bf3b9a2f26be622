"""Scores: which of the hosts that can take a machine should.

Each score rates all hosts at once from 0 to 1, the higher the better; ratings of hosts that a
filter refused mean nothing and are not looked at. A rating depends on its own host only, not
on which others there are, so it can be compared over time.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from novacron.core.machine import Machine
from novacron.scheduler.table import CPU, MEMORY, HostTable

__all__ = ["SCORES", "Ratings", "Score"]

Ratings = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Score:
    """One reason to prefer a host, and how much it counts beside the others."""

    name: str
    weight: float
    rate: Callable[[HostTable, Machine], Ratings]


def _left_free(table: HostTable, machine: Machine) -> Ratings:
    """Return the fraction of each resource that would be free with the machine on the host."""
    wanted = machine.wanted
    asked = np.array([[wanted.vcpus], [wanted.memory_mib], [wanted.disk_mib]], dtype=np.int64)
    left: Ratings = (table.free - asked) / np.maximum(table.allocatable, 1)
    return left


def _least_allocated(table: HostTable, machine: Machine) -> Ratings:
    """Prefer hosts with much left free: load spreads, and a lost host takes few along."""
    left = _left_free(table, machine)
    rating: Ratings = (left[0] + left[1] + left[2]) / 3
    return rating


def _balanced(table: HostTable, machine: Machine) -> Ratings:
    """Prefer hosts where CPU and memory run out together: half a host cannot be used alone."""
    left = _left_free(table, machine)
    rating: Ratings = 1 - np.abs(left[CPU] - left[MEMORY])
    return rating


def _spread(table: HostTable, _: Machine) -> Ratings:
    """Prefer hosts with few machines: among equals the emptier one."""
    rating: Ratings = 1 / (1 + table.machines)
    return rating


# Room decides. Balance corrects it where two hosts have about the same room, and the number
# of machines matters only between hosts that are otherwise alike.
SCORES: tuple[Score, ...] = (
    Score("LeastAllocated", 1.0, _least_allocated),
    Score("Balanced", 0.5, _balanced),
    Score("Spread", 0.1, _spread),
)
