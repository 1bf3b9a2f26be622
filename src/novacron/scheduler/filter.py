"""What a filter is: a mask of the hosts it refuses, and the words for it.

It looks at all hosts at once and returns the mask of those it refuses, or None when it has
nothing to say about this machine. Its phrase tells why, of one refused host or of many; it is
made only when somebody reads it, and only from what was true when the filter was asked.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from novacron.core.cpu import Cpu
from novacron.core.host import Host
from novacron.core.machine import Machine
from novacron.scheduler.devices import DeviceView
from novacron.scheduler.nearness import CompanyView
from novacron.scheduler.storage import StorageView
from novacron.scheduler.table import HostTable, Mask

__all__ = ["Asked", "Filter", "Refused", "be", "have", "lack", "some"]

NAMED_AT_MOST = 3


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A machine, and what the table says of things that few machines ask for."""

    machine: Machine
    company: CompanyView | None = None
    devices: DeviceView | None = None
    cpu: Cpu | None = None
    storage: StorageView | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Refused:
    """One or more hosts that a filter refused, with what each had free at that moment."""

    hosts: Sequence[Host]
    rows: NDArray[np.intp]
    free: NDArray[np.int64]

    @property
    def one(self) -> bool:
        """Whether it is a single host, for the grammar's sake."""
        return len(self.hosts) == 1


@dataclass(frozen=True, slots=True)
class Filter:
    """One reason for which a host is out of the question."""

    name: str
    refuses: Callable[[HostTable, Asked], Mask | None]
    phrase: Callable[[Asked, Refused], str]


def be(refused: Refused) -> str:
    """Return the verb for what a host is."""
    return "is" if refused.one else "are"


def have(refused: Refused) -> str:
    """Return the verb for what a host has."""
    return "has" if refused.one else "have"


def lack(refused: Refused) -> str:
    """Return the verb for what a host has not."""
    return "lacks" if refused.one else "lack"


def some(words: Iterable[str]) -> str:
    """Name the first few in order: thousands of hosts must not make a message of thousands."""
    every = sorted(set(words))
    named, more = every[:NAMED_AT_MOST], len(every) - NAMED_AT_MOST
    return ", ".join([*named, f"{more} more"] if more > 0 else named)
