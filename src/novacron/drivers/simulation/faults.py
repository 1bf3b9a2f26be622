"""Faults of a simulated host: which call fails, how often, and as what.

A fault strikes before the call does anything, so a struck call has changed nothing.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from novacron.core.errors import (
    Busy,
    DriverError,
    OutOfCapacity,
    Rejected,
    Unreachable,
    Unsupported,
)

__all__ = ["ERRORS", "Fault", "Operation", "strike"]

ERRORS: dict[str, type[DriverError]] = {
    error.__name__: error for error in (Busy, OutOfCapacity, Rejected, Unreachable, Unsupported)
}


class Operation(StrEnum):
    """What a driver can be asked, by the name under which it is delayed or made to fail."""

    OBSERVE = "observe"
    CREATE = "create"
    START = "start"
    STOP = "stop"
    RESIZE = "resize"
    DELETE = "delete"
    MOVE = "move"
    COMMAND = "command"
    MACHINES = "machines"
    HOSTS = "hosts"
    SNAPSHOT = "snapshot"
    RESTORE = "restore"
    DISCARD = "discard"


@dataclass(frozen=True, slots=True)
class Fault:
    """Makes an operation fail at a rate from 0 (never) to 1 (always).

    ``error`` is the name of a failure in ``core.errors``. ``machine`` is a glob over machine
    names; calls that concern no machine (machines, hosts) are struck only by ``*``.
    """

    operation: Operation
    error: str
    rate: float = 1.0
    machine: str = "*"
    message: str = ""

    def __post_init__(self) -> None:
        if self.error not in ERRORS:
            raise ValueError(f"no failure is called {self.error}; known: {', '.join(ERRORS)}")
        if not 0.0 <= self.rate <= 1.0:
            raise ValueError(f"a fault's rate lies between 0 and 1, not at {self.rate}")

    def strikes(self, operation: Operation, machine: str, random: Callable[[], float]) -> bool:
        """Say whether this call fails; the random number is drawn only for calls it names."""
        return (
            self.operation == operation
            and fnmatchcase(machine, self.machine)
            and random() < self.rate
        )


def strike(
    faults: Iterable[Fault], operation: Operation, machine: str, random: Callable[[], float]
) -> None:
    """Raise the failure of the first fault that strikes this call, if any does."""
    for fault in faults:
        if fault.strikes(operation, machine, random):
            raise ERRORS[fault.error](fault.message or f"a simulated fault struck {operation}")
