"""Filters: which hosts cannot take a machine, and in which words.

A filter looks at all hosts at once and returns the mask of those it refuses, or None when it
has nothing to say about this machine. Its phrase tells why, of one refused host or of many;
it is made only when somebody reads it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from novacron.core.host import Host
from novacron.core.machine import Machine
from novacron.scheduler.table import CPU, DISK, MEMORY, REPELLING, HostTable, Mask

__all__ = ["FILTERS", "WISHES", "Filter", "Refused", "lack"]

NAMED_AT_MOST = 3


@dataclass(frozen=True, slots=True, eq=False)
class Refused:
    """One or more hosts that a filter refused, with what each had free at that moment."""

    hosts: Sequence[Host]
    free: NDArray[np.int64]

    @property
    def one(self) -> bool:
        """Whether it is a single host, for the grammar's sake."""
        return len(self.hosts) == 1


@dataclass(frozen=True, slots=True)
class Filter:
    """One reason for which a host is out of the question."""

    name: str
    refuses: Callable[[HostTable, Machine], Mask | None]
    phrase: Callable[[Machine, Refused], str]


def lack(refused: Refused, what: str, column: int, asked: str) -> str:
    """Say that hosts have too little of something."""
    most = max(int(refused.free[column].max()), 0)
    free = f"{most} free" if refused.one else f"{most} free at most"
    return f"{'lacks' if refused.one else 'lack'} {what} ({asked}, {free})"


def _unready(table: HostTable, _: Machine) -> Mask:
    return table.unready


def _say_unready(_: Machine, refused: Refused) -> str:
    reasons = _some(host.why_not_ready for host in refused.hosts if host.why_not_ready)
    because = f" ({reasons})" if reasons else ""
    return f"{_be(refused)} not ready{because}"


def _cordoned(table: HostTable, _: Machine) -> Mask:
    return table.cordoned


def _say_cordoned(_: Machine, refused: Refused) -> str:
    return f"{_be(refused)} cordoned"


def _refused_before(table: HostTable, machine: Machine) -> Mask | None:
    rows = [row for row in map(table.row, machine.refused_hosts) if row is not None]
    if not rows:
        return None
    mask = np.zeros(table.size, dtype=np.bool_)
    mask[rows] = True
    return mask


def _say_refused_before(_: Machine, __: Refused) -> str:
    return "refused it before"


def _unasked(table: HostTable, machine: Machine) -> Mask | None:
    if machine.only_host is None:
        return None
    mask = np.ones(table.size, dtype=np.bool_)
    if (row := table.row(machine.only_host)) is not None:
        mask[row] = False
    return mask


def _say_unasked(machine: Machine, refused: Refused) -> str:
    return f"{_be(refused)} not {machine.only_host}, which was asked for"


def _being_left(table: HostTable, machine: Machine) -> Mask | None:
    row = table.row(machine.leaving) if machine.leaving else None
    if row is None:
        return None
    mask = np.zeros(table.size, dtype=np.bool_)
    mask[row] = True
    return mask


def _say_being_left(_: Machine, __: Refused) -> str:
    return "is where it is now"


def _unselected(table: HostTable, machine: Machine) -> Mask | None:
    return table.lacking(machine.host_selector) if machine.host_selector else None


def _say_unselected(machine: Machine, refused: Refused) -> str:
    missing = {
        f"{key}={value}"
        for host in refused.hosts
        for key, value in machine.host_selector.items()
        if host.labels.get(key) != value
    }
    noun = "label" if len(missing) == 1 else "labels"
    return f"{'lacks' if refused.one else 'lack'} {noun} {_some(missing)}"


def _tainted(table: HostTable, _: Machine) -> Mask:
    return table.tainted


def _say_tainted(_: Machine, refused: Refused) -> str:
    taints = {str(t) for host in refused.hosts for t in host.taints if t.effect in REPELLING}
    noun = "taint" if len(taints) == 1 else "taints"
    return f"{'has' if refused.one else 'have'} {noun} {_some(taints)}"


def _too_few_cpus(table: HostTable, machine: Machine) -> Mask:
    return _short(table, CPU, machine.wanted.vcpus)


def _say_too_few_cpus(machine: Machine, refused: Refused) -> str:
    return lack(refused, "CPU", CPU, f"{machine.wanted.vcpus} asked")


def _too_little_memory(table: HostTable, machine: Machine) -> Mask:
    return _short(table, MEMORY, machine.wanted.memory_mib)


def _say_too_little_memory(machine: Machine, refused: Refused) -> str:
    return lack(refused, "memory", MEMORY, f"{machine.wanted.memory_mib} MiB asked")


def _too_little_disk(table: HostTable, machine: Machine) -> Mask:
    return _short(table, DISK, machine.wanted.disk_mib)


def _say_too_little_disk(machine: Machine, refused: Refused) -> str:
    return lack(refused, "disk", DISK, f"{machine.wanted.disk_mib} MiB asked")


def _short(table: HostTable, column: int, asked: int) -> Mask:
    mask: Mask = table.free[column] < asked
    return mask


def _be(refused: Refused) -> str:
    return "is" if refused.one else "are"


def _some(words: Iterable[str]) -> str:
    """Name the first few in order: thousands of hosts must not make a message of thousands."""
    every = sorted(set(words))
    named, more = every[:NAMED_AT_MOST], len(every) - NAMED_AT_MOST
    return ", ".join([*named, f"{more} more"] if more > 0 else named)


# In this order a refused host gets its reason: first what is wrong with the host itself, then
# what the machine's owner asked for, and last the room, which is what changes most.
FILTERS: tuple[Filter, ...] = (
    Filter("Asked", _unasked, _say_unasked),
    Filter("Elsewhere", _being_left, _say_being_left),
    Filter("Ready", _unready, _say_unready),
    Filter("Schedulable", _cordoned, _say_cordoned),
    Filter("NotRefused", _refused_before, _say_refused_before),
    Filter("Selector", _unselected, _say_unselected),
    Filter("Taints", _tainted, _say_tainted),
    Filter("CPU", _too_few_cpus, _say_too_few_cpus),
    Filter("Memory", _too_little_memory, _say_too_little_memory),
    Filter("Disk", _too_little_disk, _say_too_little_disk),
)
# The names of those that say what the machine's owner asked for.
WISHES = frozenset({"Selector"})
