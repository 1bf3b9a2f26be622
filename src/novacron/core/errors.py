"""Failures of a hypervisor, each named by its remedy.

A driver raises these and nothing else; its own library's exceptions are mapped in
``drivers/<name>/errors.py``. Whoever catches one knows what to do next without knowing
which hypervisor it came from.
"""

from datetime import timedelta

__all__ = ["Busy", "DriverError", "OutOfCapacity", "Rejected", "Unreachable", "Unsupported"]


class DriverError(Exception):
    """Something a hypervisor said or did; the message is one sentence for a user."""


class Unreachable(DriverError):
    """The hypervisor did not answer: back off and ask again."""


class Busy(DriverError):
    """The hypervisor is at work on this machine: look again after a while."""

    def __init__(self, message: str, after: timedelta = timedelta(seconds=1)) -> None:
        super().__init__(message)
        self.after = after


class OutOfCapacity(DriverError):
    """The host has no room: place the machine again."""


class Rejected(DriverError):
    """The hypervisor will never accept this specification: wait for a new one."""


class Unsupported(DriverError):
    """The hypervisor cannot do this at all; the message names the missing capability."""
