"""The engine: asks every filter, adds up every score, and decides.

The same table and machine give the same decision, whatever order hosts came in: ties go to
the first name.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from novacron.core.host import Host
from novacron.core.machine import Machine, Resources
from novacron.scheduler.filters import FILTERS, WISHES, Refused
from novacron.scheduler.scores import SCORES
from novacron.scheduler.table import CPU, DISK, MEMORY, HostTable, Mask

__all__ = ["Decision", "Nowhere", "Placed", "Survey", "choose", "fits", "unwelcome"]

FITS, NO_HOST = len(FILTERS), len(FILTERS) + 1


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """What the filters said of every host, and all that is needed to say why later.

    A verdict is the number of the first filter that refused the row's host, or FITS. Nothing
    here changes with the table: a decision can be explained after others were made.
    """

    machine: Machine
    hosts: tuple[Host | None, ...]
    free: NDArray[np.int64]
    verdicts: NDArray[np.int8]

    @property
    def known(self) -> int:
        """How many hosts were looked at."""
        return int((self.verdicts != NO_HOST).sum())

    @property
    def fitting(self) -> int:
        """How many hosts could take the machine."""
        return int((self.verdicts == FITS).sum())


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """The machine goes on this host; its ratings by score, and their weighted mean."""

    host: str
    score: float
    scores: Mapping[str, float]
    survey: Survey


@dataclass(frozen=True, slots=True, eq=False)
class Nowhere:
    """No host can take the machine; the survey knows each host's reason."""

    survey: Survey


Decision = Placed | Nowhere


def choose(table: HostTable, machine: Machine) -> Decision:
    """Choose the host for a machine.

    Nothing is taken: that is the caller's next call. A machine that is to be placed anew is
    released before, else it stands in its own way.
    """
    survey = _survey(table, machine)
    fitting = survey.verdicts == FITS
    if not fitting.any():
        return Nowhere(survey)
    return _best(table, machine, survey, fitting)


def _survey(table: HostTable, machine: Machine) -> Survey:
    verdicts = np.full(table.size, FITS, dtype=np.int8)
    # Backwards, so that the first filter to refuse a host has the last word.
    for number in range(len(FILTERS) - 1, -1, -1):
        refused = FILTERS[number].refuses(table, machine)
        if refused is not None:
            np.putmask(verdicts, refused, number)
    np.putmask(verdicts, table.vacant, NO_HOST)
    return Survey(machine, table.hosts, table.free.copy(), verdicts)


def _best(table: HostTable, machine: Machine, survey: Survey, fitting: Mask) -> Placed:
    ratings = [(score, score.rate(table, machine)) for score in SCORES]
    total = np.zeros(table.size)
    for score, rating in ratings:
        total += score.weight * rating
    total /= sum(score.weight for score in SCORES)
    total[~fitting] = -1.0
    ties = np.flatnonzero(total == total.max())
    row = int(ties[table.ranks[ties].argmin()])
    host = survey.hosts[row]
    assert host is not None, "a vacant row never fits"
    by_name = {score.name: float(rating[row]) for score, rating in ratings}
    return Placed(host.name, float(total[row]), by_name, survey)


def unwelcome(table: HostTable, machine: Machine, host: str) -> str | None:
    """Say in which way a host is not what the machine's owner wants, or None when it is.

    Whether there is room, or new machines are let in, is of no concern to one that is there.
    """
    row = table.row(host)
    if row is None:
        return None
    for wish in (each for each in FILTERS if each.name in WISHES):
        refused = wish.refuses(table, machine)
        if refused is not None and refused[row]:
            there = table.hosts[row]
            assert there is not None
            return wish.phrase(machine, Refused([there], table.free[:, [row]]))
    return None


def fits(table: HostTable, uid: str, host: str, size: Resources) -> str | None:
    """Say why a machine cannot have this size where it is, or None when it can.

    Only what grows needs room. Labels, taints and cordons keep machines from coming, not
    those that are there from growing.
    """
    row = table.row(host)
    if row is None:
        return f"host {host} is not declared"
    held = table.held(uid)
    has = held.resources if held is not None and held.host == host else Resources()
    for what, column, asked, had in (
        ("CPU", CPU, size.vcpus, has.vcpus),
        ("memory", MEMORY, size.memory_mib, has.memory_mib),
        ("disk", DISK, size.disk_mib, has.disk_mib),
    ):
        free = int(table.free[column, row])
        if asked > had and asked - had > free:
            unit = "" if column == CPU else " MiB"
            return f"host {host} lacks {what} ({asked - had}{unit} more asked, {max(free, 0)} free)"
    return None
