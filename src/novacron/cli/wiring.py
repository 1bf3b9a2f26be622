"""What the command line is told by ``app``, the one place that knows everything."""

from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import click

if TYPE_CHECKING:
    import socket

    from novacron.core.driver import ConsoleStream, Display, Said
    from novacron.runtime.client import Client
    from novacron.scheduler import Decision

__all__ = [
    "Definitions",
    "Explain",
    "Guest",
    "Guests",
    "HostVolumes",
    "Manifests",
    "Wiring",
    "wiring_of",
]

Manifests = Callable[[Collection[str]], list[dict[str, Any]]]
# The second argument is the least memory a machine may have.
Definitions = Callable[[Collection[str], str], list[dict[str, Any]]]


class Guest(Protocol):
    """What runs behind a machine, asked at its host and not at the API server."""

    async def addresses(self) -> tuple[str, ...]:
        """Return the addresses it has now; none while it is off."""

    async def said(self, since: int = 0) -> "Said":
        """Return what it said on its console so far, or a part of that; see ``core.driver``."""

    async def console(self) -> "ConsoleStream":
        """Open its console, taking it from whoever has it."""

    async def display(self) -> "Display":
        """Tell where its screen is."""

    async def open_display(self) -> "socket.socket":
        """Connect to its screen."""


# The namespace is that of the Secrets which hosts name; None stands for a machine of which nothing
# can be shown, because it is only simulated.
Guests = Callable[["Client", dict[str, Any], str], AbstractAsyncContextManager[Guest | None]]


# Deletes a volume: the host, the namespace, the volume's id, and the namespace of Secrets.
HostVolumes = Callable[["Client", str, str, str, str], Awaitable[None]]


class Explain(Protocol):
    """Decides once more where a machine would go, among hosts and machines that were read."""

    def __call__(
        self,
        machine: dict[str, Any],
        hosts: Iterable[dict[str, Any]],
        machines: Iterable[dict[str, Any]],
        namespaces: Iterable[dict[str, Any]],
    ) -> "Decision":
        """Return the decision."""


@dataclass(frozen=True, slots=True)
class Wiring:
    """Manifests by API families, the command that runs our operator, and what machines have."""

    crds: Definitions
    rbac: Manifests
    operator: tuple[str, ...]
    guest: Guests
    explain: Explain
    volumes: HostVolumes


def wiring_of(context: click.Context) -> Wiring:
    """Return the wiring that the program was started with."""
    found = context.find_object(Wiring)
    assert found is not None
    return found
