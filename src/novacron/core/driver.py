"""The ports through which the core reaches hypervisors.

Calls return at once, may be repeated, and take core values, never API objects. What every
hypervisor can do is ``Driver``; anything more is a small protocol of its own that a driver
may also satisfy, announced in ``capabilities`` so that the scheduler can filter on it.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Protocol, runtime_checkable

from novacron.core.host import HostFacts
from novacron.core.machine import MachinePlan, MachineRef, Observed, Power

__all__ = ["Accepted", "Capability", "Driver", "Drivers", "Inventory"]


class Capability(StrEnum):
    """What a driver can do beyond the six calls."""

    INVENTORY = "Inventory"
    RESIZE_RUNNING = "ResizeRunning"
    LIVE_MIGRATION = "LiveMigration"


@dataclass(frozen=True, slots=True)
class Accepted:
    """The hypervisor took the order; look again after this long to see what became of it."""

    look_again: timedelta = timedelta(0)


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
        """Make the machine, powered off. The same UID twice makes one machine."""

    async def resize(self, plan: MachinePlan) -> Accepted:
        """Give the machine what the plan says."""

    async def set_power(self, ref: MachineRef, want: Power, *, force: bool = False) -> Accepted:
        """Start or stop the machine; a forced stop asks the guest nothing."""

    async def delete(self, ref: MachineRef) -> Accepted:
        """Remove the machine and all it owns. An absent machine is success."""

    def hosts(self) -> AsyncIterator[HostFacts]:
        """Tell of every host behind this connection."""

    async def close(self) -> None:
        """Let go of the connection."""


@runtime_checkable
class Inventory(Protocol):
    """A driver that tells of all its machines in one call, so that nobody asks one by one."""

    async def machines(self, host: str) -> Sequence[Observed]:
        """Tell of every machine on the host that carries an owner's UID."""


class Drivers(Protocol):
    """Finds the driver that reaches a host."""

    def named(self, host: str) -> Driver | None:
        """Return the driver for the host, or None when no such host is known."""

    def trouble(self, host: str) -> str | None:
        """Return why the host does not answer at present, or None when it does."""
