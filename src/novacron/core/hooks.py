"""Hooks: what is done when a machine has started and before it is stopped.

Programs run inside the guest, never on a host. Each is done once for each start of a guest, also
when we die in between: whoever does it keeps the record at the guest.
"""

import hashlib
from dataclasses import dataclass
from datetime import timedelta

__all__ = [
    "NO_HOOKS",
    "PRE_START",
    "PRE_STOP",
    "TIMED_OUT",
    "WITHOUT_LIMIT",
    "GuestProgram",
    "Hook",
    "Hooks",
    "HttpRequest",
    "Ran",
]

PRE_START = "preStart"
PRE_STOP = "preStop"
# What the program `timeout` ends with, so people know it.
TIMED_OUT = 124
WITHOUT_LIMIT = timedelta(seconds=300)


@dataclass(frozen=True, slots=True)
class GuestProgram:
    """A program inside the guest, with its arguments; no shell reads them."""

    command: tuple[str, ...]
    timeout: timedelta = WITHOUT_LIMIT

    @property
    def digest(self) -> str:
        """A short word for what is run, however long it may take."""
        return _digest(self.command)


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request to the machine, or to a host that was named."""

    port: int | str
    path: str = "/"
    host: str | None = None
    encrypted: bool = False
    headers: tuple[tuple[str, str], ...] = ()
    timeout: timedelta = WITHOUT_LIMIT

    @property
    def digest(self) -> str:
        """A short word for what is asked, however long it may take."""
        return _digest((self.port, self.path, self.host, self.encrypted, self.headers))


Hook = GuestProgram | HttpRequest


@dataclass(frozen=True, slots=True)
class Hooks:
    """What a machine's owner wants done."""

    pre_start: Hook | None = None
    pre_stop: Hook | None = None


NO_HOOKS = Hooks()


@dataclass(frozen=True, slots=True)
class Ran:
    """What was done for a guest since it was started: under which name, and how it ended.

    ``code`` is the exit status, 0 for success. ``note`` is for people, such as where to find what a
    program said, which may be secret and is kept nowhere else.
    """

    name: str
    digest: str
    code: int
    note: str = ""


def _digest(what: object) -> str:
    return hashlib.sha256(repr(what).encode()).hexdigest()[:16]
