"""Failures of a hypervisor, each named by its remedy.

A driver raises these and nothing else; its own library's exceptions are mapped in
``drivers/<name>/errors.py``. Whoever catches one knows what to do next without knowing
which hypervisor it came from.
"""

from datetime import timedelta

__all__ = ["Busy", "DriverError", "OutOfCapacity", "Rejected", "Unreachable", "Unsupported"]


class DriverError(Exception):
    """Something a hypervisor said or did; the message is one sentence for a user.

    ``reason`` is the word a user can search for; each remedy has one of its own unless more is
    known.
    """

    reason = "HypervisorError"

    def __init__(self, message: str, *, reason: str | None = None) -> None:
        super().__init__(message)
        if reason is not None:
            self.reason = reason


class Unreachable(DriverError):
    """The hypervisor did not answer: back off and ask again."""

    reason = "HostUnreachable"


class Busy(DriverError):
    """Not now, for example because the hypervisor is at work on it: look again after a while."""

    reason = "Busy"

    def __init__(
        self,
        message: str,
        after: timedelta = timedelta(seconds=1),
        *,
        reason: str | None = None,
    ) -> None:
        super().__init__(message, reason=reason)
        self.after = after


class OutOfCapacity(DriverError):
    """The host has no room: place the machine again."""

    reason = "HostFull"


class Rejected(DriverError):
    """It cannot be done as it was asked for.

    Wait for another specification, or look again after a while where the world may change too.
    """

    reason = "Rejected"

    def __init__(
        self, message: str, *, reason: str | None = None, again: timedelta | None = None
    ) -> None:
        super().__init__(message, reason=reason)
        self.again = again


class Unsupported(DriverError):
    """The hypervisor cannot do this at all; the message names the missing capability."""

    reason = "Unsupported"
