"""VirtualMachine ``novacron.io/v1alpha1``: every field of the specification and a few of ours."""

from typing import Annotated

from pydantic import Field

from novacron.core.move import MoveMode
from novacron.core.report import Phase
from novacron.crd import (
    AGE,
    Atomic,
    Column,
    CustomResource,
    ListMap,
    ListSet,
    Model,
    Rule,
    kind,
)
from novacron.families.move_types import MigrationStatus
from novacron.families.novacron.template_types import MachineTemplate
from novacron.families.novacron.volume_types import (
    Reservation,
    VolumeStatus,
    volumes_stay_what_they_are,
)
from novacron.families.shared_types import Amount, Condition
from novacron.families.snapshot_types import (
    RestoreRequest,
    RestoreStatus,
    ScheduleStatus,
    SnapshotPolicy,
    SnapshotRequest,
    SnapshotStatus,
)
from novacron.families.update_types import UpdateStrategy

__all__ = [
    "DeviceStatus",
    "MigrationPolicy",
    "ResourceUsage",
    "UsageStatus",
    "VirtualMachine",
    "VirtualMachineSpec",
    "VirtualMachineStatus",
]

_BITS_PER_SECOND = "^([1-9][0-9]*([.][0-9]+)?|0[.][0-9]*[1-9][0-9]*)[kKMGT]?bps$"


class MigrationPolicy(Model):
    """How the machine may be moved to another host."""

    allow_live_migration: bool = True
    """Whether it may be moved while it runs."""
    compression: bool = True
    """Whether its memory is compressed on the way."""
    encrypted: bool = False
    """Whether its memory, and disks that go along, are encrypted on the way."""
    bandwidth: (
        Annotated[
            str,
            Field(max_length=32),
            Rule(
                f"self.matches('{_BITS_PER_SECOND}')"
                " ? quantity(self.replace('bps', '').replace('K', 'k'))"
                f".compareTo(quantity('{8 * 1024**2}')) >= 0"
                " : isQuantity(self) && quantity(self).compareTo(quantity('1Mi')) >= 0",
                "must be bits per second such as 500Mbps or 1Gbps, or bytes per second such as "
                "100Mi, and at least 1Mi, which is 8.4Mbps",
            ),
        ]
        | None
    ) = None
    """How fast it may be moved, in whole MiB a second; without it, as fast as can be."""


class VirtualMachineSpec(Model):
    """What is wanted of the machine."""

    __rules__ = (
        Rule(
            "self.template.spec.image.source == oldSelf.template.spec.image.source",
            "image.source cannot change once set: delete the machine and create a new one",
            field_path=".template.spec.image.source",
        ),
        Rule(
            "!quantity(string(self.template.spec.resources.disk))"
            ".isLessThan(quantity(string(oldSelf.template.spec.resources.disk)))",
            "disk can grow but never shrink",
            field_path=".template.spec.resources.disk",
        ),
        *volumes_stay_what_they_are("template.spec.volumes"),
    )

    template: MachineTemplate
    """The machine itself."""
    running: bool = True
    """Whether the machine is to run."""
    migration_policy: MigrationPolicy = MigrationPolicy()
    """How it may be moved to another host."""
    snapshot_policy: SnapshotPolicy | None = None
    """When snapshots are taken by themselves, and what becomes of all when the machine goes."""
    snapshots: Annotated[list[SnapshotRequest], ListMap("name"), Field(max_length=64)] = []
    """Snapshots to take on demand, and to remove."""
    restore: RestoreRequest | None = None
    """The snapshot that the machine goes back to."""
    update_strategy: UpdateStrategy = UpdateStrategy()
    """How a change that needs a restart is made."""


class ResourceUsage(Model):
    """How much of one resource is used."""

    used: Amount | None = None
    """What the guest uses."""
    available: Amount | None = None
    """What the machine has."""


class UsageStatus(Model):
    """How much the machine has and uses."""

    cpu: ResourceUsage | None = None
    """CPUs."""
    memory: ResourceUsage | None = None
    """Memory."""
    disk: ResourceUsage | None = None
    """The first disk."""


class DeviceStatus(Model):
    """A piece of hardware that is set aside for the machine on its host."""

    address: Annotated[str, Field(min_length=1, max_length=253)]
    """Where the host has it."""
    type: str
    """What it is."""
    vendor: str
    """Who makes it."""
    model: str
    """Which one."""
    numa_node: Annotated[int, Field(ge=0)] | None = None
    """The NUMA node that it is close to."""


class MoveStatus(MigrationStatus):
    """The move to another host that is under way, or the last one."""

    mode: MoveMode | None = None
    """Live while it runs, Stopped for it, or Anew from its disks because its host is off."""
    devices: Annotated[list[DeviceStatus], ListMap("address")] = []
    """Hardware of the other host that is set aside for it meanwhile."""


class VirtualMachineStatus(Model):
    """What is known of the machine."""

    phase: Phase | None = None
    """Its state in one word."""
    node_name: str | None = None
    """The host it runs on."""
    vm_id: Annotated[str | None, Field(alias="vmID")] = None
    """What the hypervisor calls it."""
    ip_addresses: Annotated[list[str], Atomic()] = []
    """Its addresses, the most useful first."""
    resources: UsageStatus | None = None
    """How much it has and uses."""
    reservation: Reservation | None = None
    """What is set aside for it on its host, where that is not what it has."""
    devices: Annotated[list[DeviceStatus], ListMap("address")] = []
    """Hardware that is set aside for it on its host."""
    refused_hosts: Annotated[list[str], ListSet()] = []
    """Hosts that turned it away since it was last placed; others are tried first."""
    refusals: Annotated[int, Field(ge=0)] | None = None
    """How often hosts turned it away; placements on record from before the last time are void."""
    leftover_hosts: Annotated[list[str], ListSet()] = []
    """Hosts it has left that did not answer then; what may be left there is removed when they
    do."""
    unreached_hosts: Annotated[list[str], ListSet()] = []
    """Those of them that it was only on its way to when its host, or that one, was lost."""
    guest_cpu: str | None = None
    """A word for the CPU that it was started with; it can move live where a host has as much."""
    conditions: Annotated[list[Condition], ListMap("type")] = []
    """What is so and what is not; Ready sums it up."""
    migration: MoveStatus | None = None
    """The move that is under way, or the last one."""
    snapshots: Annotated[list[SnapshotStatus], ListMap("name")] = []
    """Its snapshots."""
    restore: RestoreStatus | None = None
    """What became of the last restore."""
    snapshot_schedule: ScheduleStatus | None = None
    """How far the schedule of snapshots was followed."""
    volumes: Annotated[list[VolumeStatus], ListMap("id")] = []
    """Its disks beside the first, and those taken off it and kept."""
    observed_generation: Annotated[int, Field(ge=0)] | None = None
    """The metadata.generation that all this was found out for."""


_RESOURCES = ".spec.template.spec.resources"
_DEVICES = "spec.template.spec.devices"


@kind(
    group="novacron.io",
    version="v1alpha1",
    short=("vm", "vms"),
    categories=("novacron",),
    columns=(
        Column("Phase", ".status.phase"),
        Column("Node", ".status.nodeName"),
        Column("IP", ".status.ipAddresses[0]"),
        AGE,
        Column("CPU", f"{_RESOURCES}.cpu", "integer", 1),
        Column("Memory", f"{_RESOURCES}.memory", priority=1),
        Column("Image", ".spec.template.spec.image.source", priority=1),
        Column("Reason", '.status.conditions[?(@.type=="Ready")].reason', priority=1),
        Column("VM ID", ".status.vmID", priority=1),
    ),
)
class VirtualMachine(CustomResource):
    """A virtual machine, kept the way its spec says."""

    __rules__ = (
        Rule(
            "self.metadata.name.size() <= 63"
            " && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
            "metadata.name must be at most 63 lower-case letters, digits and '-', because the "
            "guest takes it as its host name",
        ),
        Rule(
            "!has(oldSelf.status) || !has(oldSelf.status.nodeName)"
            f" || (has(self.{_DEVICES}) ? has(oldSelf.{_DEVICES})"
            f" && self.{_DEVICES} == oldSelf.{_DEVICES} : !has(oldSelf.{_DEVICES}))",
            "devices cannot change once the machine has a host: delete it and create a new one",
            field_path=".spec.template.spec.devices",
        ),
    )

    spec: VirtualMachineSpec
    """What is wanted of the machine."""
    status: VirtualMachineStatus | None = None
    """What is known of the machine."""
