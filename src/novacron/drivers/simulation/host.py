"""What a simulated host is like: its room, its pace, its faults and how busy its guests are.

Values only; they come from whoever declares the host and are not kept in the file, so a
changed declaration is in force with the next driver made from it.
"""

from dataclasses import dataclass, field
from datetime import timedelta

from novacron.core.devices import HostDevice
from novacron.core.machine import Power, Resources, Usage
from novacron.core.volume import StorageClass
from novacron.drivers.simulation.faults import Fault

__all__ = ["Delays", "SimulatedHost", "UsageFractions"]

AT_ONCE = timedelta(0)


@dataclass(frozen=True, slots=True)
class Delays:
    """How long each operation takes; zero means that it is done when the call returns."""

    create: timedelta = AT_ONCE
    start: timedelta = AT_ONCE
    stop: timedelta = AT_ONCE
    resize: timedelta = AT_ONCE
    delete: timedelta = AT_ONCE
    move: timedelta = AT_ONCE

    def __post_init__(self) -> None:
        each = (self.create, self.start, self.stop, self.resize, self.delete, self.move)
        if min(each) < AT_ONCE:
            raise ValueError("a simulated operation cannot take less than no time")


@dataclass(frozen=True, slots=True)
class UsageFractions:
    """Which part of what it was given a simulated guest really uses."""

    cpu: float = 0.1
    memory: float = 0.5
    disk: float = 0.25

    def of(self, given: Resources, power: Power) -> Usage:
        """Return what a guest of this size uses; a stopped one still fills its disk."""
        disk_mib = int(given.disk_mib * self.disk)
        if power is Power.OFF:
            return Usage(0.0, 0, disk_mib)
        return Usage(given.vcpus * self.cpu, int(given.memory_mib * self.memory), disk_mib)


@dataclass(frozen=True, slots=True)
class SimulatedHost:
    """One host of the simulation.

    ``capacity`` is what it physically has; ``allocatable`` is what it lets machines take,
    overcommit included, and is the capacity itself when not given.
    """

    name: str
    capacity: Resources
    allocatable: Resources | None = None
    delays: Delays = field(default_factory=Delays)
    faults: tuple[Fault, ...] = ()
    usage: UsageFractions = field(default_factory=UsageFractions)
    storage_classes: tuple[StorageClass, ...] = ()
    devices: tuple[HostDevice, ...] = ()
    migration_tls: bool = True

    @property
    def room(self) -> Resources:
        """All that machines may take of this host together."""
        return self.capacity if self.allocatable is None else self.allocatable
