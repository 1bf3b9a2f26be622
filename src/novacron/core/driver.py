"""The ports through which the core reaches hypervisors.

Calls return at once, may be repeated, and take core values, never API objects. What every
hypervisor can do is ``Driver``; anything more is a small protocol of its own that a driver
may also satisfy, announced in ``capabilities`` so that the scheduler can filter on it.
"""

import socket
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Protocol, runtime_checkable

from novacron.core.host import HostFacts
from novacron.core.machine import MachinePlan, MachineRef, Observed, Power

__all__ = [
    "Accepted",
    "Capability",
    "Console",
    "ConsoleStream",
    "Display",
    "Driver",
    "Drivers",
    "Identified",
    "Inventory",
    "Said",
    "Watching",
]


class Capability(StrEnum):
    """What a driver can do beyond the six calls."""

    INVENTORY = "Inventory"
    RESIZE_RUNNING = "ResizeRunning"
    LIVE_MIGRATION = "LiveMigration"
    MIGRATION_TARGET = "MigrationTarget"
    ENCRYPTED_MIGRATION = "EncryptedMigration"
    CONSOLE = "Console"
    SNAPSHOTS = "Snapshots"
    GUEST_COMMANDS = "GuestCommands"
    VOLUMES = "Volumes"


@dataclass(frozen=True, slots=True)
class Accepted:
    """The hypervisor took the order; look again after this long to see what became of it.

    ``seen`` is how the machine is by now, where the driver came to know that on the way.
    """

    look_again: timedelta = timedelta(0)
    seen: Observed | None = None


class Driver(Protocol):
    """One connection to one hypervisor.

    Every call raises only errors of ``core.errors``.
    """

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What this driver can do beyond these calls."""

    async def observe(self, ref: MachineRef) -> Observed | None:
        """Tell how the machine is; None means it does not exist."""

    async def create(self, plan: MachinePlan) -> Accepted:
        """Make the machine, powered off; go on with one that was abandoned.

        The same UID twice makes one machine. What went wrong with an order that was accepted
        before is raised by the next one.
        """

    async def resize(self, plan: MachinePlan) -> Accepted:
        """Give the machine what the plan says, now or, where it must be off for that, then."""

    async def set_power(self, ref: MachineRef, want: Power, *, force: bool = False) -> Accepted:
        """Start or stop the machine; a forced stop asks the guest nothing.

        One that is to be on and stands still goes on, where what kept it from that is over.
        """

    async def delete(self, ref: MachineRef) -> Accepted:
        """Remove the machine and all it owns but its volumes. An absent machine is success."""

    def hosts(self) -> AsyncIterator[HostFacts]:
        """Tell of every host behind this connection."""

    async def close(self) -> None:
        """Let go of the connection."""


@runtime_checkable
class Inventory(Protocol):
    """A driver that tells of all its machines in one call, so that nobody asks one by one."""

    async def machines(self, host: str) -> Sequence[Observed]:
        """Tell of every machine on the host that carries an owner's UID."""


@runtime_checkable
class Watching(Protocol):
    """A driver that hears of changes at the hypervisor as they happen."""

    def on_change(self, tell: Callable[[str], None]) -> None:
        """Have the UID of every machine told that changed in any way; called on the event loop."""


@runtime_checkable
class Identified(Protocol):
    """A driver whose address may come to mean another hypervisor than it meant."""

    async def identity(self) -> str:
        """Return what tells the hypervisor from every other; empty where nothing does."""

    async def is_still(self, identity: str) -> bool:
        """Say whether it is the one it was; where not, find out anew how to reach it."""


class ConsoleStream(Protocol):
    """An open serial console."""

    async def read(self) -> bytes:
        """Return what the guest said next; nothing once the console has ended."""

    async def write(self, data: bytes) -> None:
        """Type something."""

    async def close(self) -> None:
        """Hang up."""


@dataclass(frozen=True, slots=True)
class Said:
    """Something a machine said on its console, and where it will go on."""

    data: bytes
    end: int


@dataclass(frozen=True, slots=True)
class Display:
    """Where a machine's screen is shown: a VNC server, as seen from its host.

    Without an address it is nowhere but behind the driver.

    ``near`` says whether the driver can connect to it, ``tunnel`` what to type on this machine to
    have it here, where something can be.
    """

    address: str
    port: int
    near: bool = True
    tunnel: str | None = None


@runtime_checkable
class Console(Protocol):
    """A driver whose machines have a serial console and a screen."""

    async def console(self, ref: MachineRef) -> ConsoleStream:
        """Open the console of a running machine."""

    async def console_log(self, ref: MachineRef, since: int = 0) -> Said:
        """Return what the machine said on its console so far.

        From where an earlier part ended, or, where ``since`` is negative, so many bytes at the
        end. A host may begin anew with what it keeps; then it is all of that.
        """

    async def display(self, ref: MachineRef) -> Display:
        """Tell where the machine's screen is."""

    async def open_display(self, ref: MachineRef) -> socket.socket:
        """Connect to the machine's screen; Unsupported where it is not near."""


class Drivers(Protocol):
    """Finds the driver that reaches a host."""

    def named(self, host: str) -> Driver | None:
        """Return the driver for the host, or None when no such host is known."""

    def is_declared(self, host: str) -> bool:
        """Say whether the host is known, also one that cannot be used: guests may run there."""

    def trouble(self, host: str) -> str | None:
        """Return why the host does not answer at present, or None when it does."""

    def is_fenced(self, host: str) -> bool:
        """Say whether somebody made sure that the host is off and stays so."""

    def is_written_off(self, host: str) -> bool:
        """Say whether the owner of a machine is enough to forget what a silent host has of it."""
