"""Scores: which of the hosts that can take a machine should.

Each score rates all hosts at once from 0 to 1, the higher the better; ratings of hosts that a
filter refused mean nothing and are not looked at. A rating depends on its own host and the
machines there, so it can be compared over time; only where a machine could go on to depends on
the other hosts. A score that has nothing to say about a machine does not count at all.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from novacron.scheduler.filter import Asked
from novacron.scheduler.host_filters import meets
from novacron.scheduler.table import CPU, MEMORY, HostTable

__all__ = ["SCORES", "Ratings", "Score"]

Ratings = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Score:
    """One reason to prefer a host, and how much it counts beside the others.

    Beside the table it is given the fraction of each resource that would be left free.
    """

    name: str
    weight: float
    rate: Callable[[HostTable, Asked, Ratings], Ratings | None]


def _least_allocated(_: HostTable, __: Asked, left: Ratings) -> Ratings:
    """Prefer hosts with much left free: load spreads, and a lost host takes few along."""
    rating: Ratings = (left[0] + left[1] + left[2]) / 3
    return rating


def _balanced(_: HostTable, __: Asked, left: Ratings) -> Ratings:
    """Prefer hosts where CPU and memory run out together: half a host cannot be used alone."""
    rating: Ratings = 1 - np.abs(left[CPU] - left[MEMORY])
    return rating


def _spread(table: HostTable, _: Asked, __: Ratings) -> Ratings:
    """Prefer hosts with few machines: among equals the emptier one."""
    rating: Ratings = 1 / (1 + table.machines)
    return rating


def _preferred_hosts(table: HostTable, asked: Asked, _: Ratings) -> Ratings | None:
    """Prefer hosts that meet more of what the owner would like."""
    wishes = asked.machine.affinity.better_hosts if asked.machine.affinity else ()
    weight = sum(wish.weight for wish in wishes)
    if not weight:
        return None
    rating = np.zeros(table.size)
    for wish in wishes:
        rating += wish.weight / weight * meets(table, wish.term)
    return rating


def _preferred_machines(table: HostTable, asked: Asked, _: Ratings) -> Ratings | None:
    """Prefer hosts near to machines it would like to be near to, and apart from others."""
    wishes = asked.company.wishes if asked.company else ()
    if not wishes:
        return None
    weight = sum(wish.weight for wish in wishes)
    rating = np.zeros(table.size)
    for wish in wishes:
        # The first of them counts most, and each more still a little.
        alone = 1 / (1 + wish.machines)
        rating += wish.weight / weight * (1 - alone if wish.towards else alone)
    return rating


def _untainted(table: HostTable, asked: Asked, _: Ratings) -> Ratings | None:
    """Prefer hosts that do not ask machines to stay away."""
    asking = table.asking(asked.machine.tolerations)
    return None if asking is None else 1 / (1 + asking)


def _onward(table: HostTable, asked: Asked, _: Ratings) -> Ratings | None:
    """Prefer hosts from which many others could take the machine over while it runs."""
    return table.cpus.onward(table.size) if asked.machine.live_migration_allowed else None


# Wishes that somebody wrote down count more than the room, which decides where there are none.
# Balance corrects it where two hosts have about the same room, and the number of machines
# matters only between hosts that are otherwise alike.
SCORES: tuple[Score, ...] = (
    Score("LeastAllocated", 1.0, _least_allocated),
    Score("Balanced", 0.5, _balanced),
    Score("Spread", 0.1, _spread),
    Score("NodeAffinity", 3.0, _preferred_hosts),
    Score("PodAffinity", 3.0, _preferred_machines),
    Score("Taints", 4.0, _untainted),
    Score("Onward", 0.2, _onward),
)
