"""What a Host says of itself that exists only in memory."""

from typing import Annotated, Literal

from pydantic import Field

from novacron.crd import Atomic, ListMap, Model, PositiveQuantity, Rule
from novacron.families.novacron.volume_types import StorageClassName

__all__ = [
    "SimulatedCapacity",
    "SimulatedDelays",
    "SimulatedDevice",
    "SimulatedFault",
    "SimulatedMigration",
    "SimulatedStorageClass",
    "SimulatedUsage",
    "Simulation",
]

Fraction = Annotated[float, Field(ge=0, le=1)]
Duration = Annotated[
    str,
    Field(max_length=32),
    Rule(
        "self.matches('^(0|([0-9]+([.][0-9]+)?(ms|s|m|h|d))+)$')",
        "must be a duration such as 500ms, 2s or 1h30m",
    ),
]


class SimulatedCapacity(Model):
    """How much the simulated host has."""

    cpu: Annotated[int, Field(ge=1, le=65536)]
    """CPUs."""
    memory: PositiveQuantity
    """Memory."""
    disk: PositiveQuantity
    """Disk space."""


class SimulatedDelays(Model):
    """How long the simulated host takes for each operation."""

    create: Duration = "0s"
    """To make a machine."""
    start: Duration = "0s"
    """To start one."""
    stop: Duration = "0s"
    """To stop one."""
    resize: Duration = "0s"
    """To give one more or less."""
    delete: Duration = "0s"
    """To remove one."""
    move: Duration = "0s"
    """To move one to another host."""


class SimulatedFault(Model):
    """Something that goes wrong on the simulated host."""

    operation: Literal[
        "create",
        "resize",
        "start",
        "stop",
        "delete",
        "move",
        "command",
        "observe",
        "machines",
        "hosts",
        "snapshot",
        "restore",
        "discard",
    ]
    """What goes wrong."""
    error: Literal["Unreachable", "Busy", "OutOfCapacity", "Rejected", "Unsupported"]
    """How it goes wrong."""
    rate: Fraction | None = None
    """How often: 0 is never, 1 always; without it, always."""
    machines: Annotated[str, Field(max_length=253)] | None = None
    """For which machines, as a pattern of names such as web-*; without it, for all."""
    message: Annotated[str, Field(max_length=1024)] | None = None
    """What the host says; without it, something fitting."""


class SimulatedUsage(Model):
    """How much of what it has a simulated guest uses."""

    cpu: Fraction = 0.25
    """Share of its CPUs."""
    memory: Fraction = 0.5
    """Share of its memory."""
    disk: Fraction = 0.1
    """Share of its disk."""


class SimulatedDevice(Model):
    """A piece of hardware that the simulated host has."""

    address: Annotated[str, Field(min_length=1, max_length=63)]
    """Where the host has it."""
    type: Annotated[str, Field(min_length=1, max_length=63)]
    """What it is, such as gpu."""
    vendor: Annotated[str, Field(max_length=63)] | None = None
    """Who makes it."""
    model: Annotated[str, Field(max_length=63)] | None = None
    """Which one."""
    numa_node: Annotated[int, Field(ge=0)] | None = None
    """The NUMA node that it is close to."""


class SimulatedStorageClass(Model):
    """A kind of storage that the simulated host has."""

    name: StorageClassName
    """What volumes ask for."""
    shared: bool | None = None
    """Whether other hosts see the same storage; without it, not."""
    size: PositiveQuantity | None = None
    """How much it holds; without it, as much as anybody asks for."""


class SimulatedMigration(Model):
    """How machines leave the simulated host and come to it."""

    tls: bool = True
    """Whether it has certificates with which machines travel encrypted."""


class Simulation(Model):
    """A host that exists only in memory."""

    capacity: SimulatedCapacity
    """How much it has."""
    delays: SimulatedDelays = SimulatedDelays()
    """How long it takes."""
    faults: Annotated[list[SimulatedFault], Atomic(), Field(max_length=64)] = []
    """What goes wrong."""
    usage: SimulatedUsage = SimulatedUsage()
    """How much its guests use."""
    storage_classes: Annotated[
        list[SimulatedStorageClass], ListMap("name"), Field(max_length=64)
    ] = []
    """The kinds of storage it has beside its own."""
    devices: Annotated[list[SimulatedDevice], ListMap("address"), Field(max_length=64)] = []
    """Hardware it can hand to machines."""
    migration: SimulatedMigration = SimulatedMigration()
    """How machines leave it and come to it."""
