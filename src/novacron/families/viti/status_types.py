"""What is known of a Machine: the specification's words, upstream's, and a few of ours."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from novacron.crd import Atomic, ListMap, Model
from novacron.families.move_types import MigrationStatus
from novacron.families.shared_types import Amount, Condition
from novacron.families.snapshot_types import RestoreStatus, ScheduleStatus, SnapshotStatus

__all__ = ["DiskStatus", "ImportStatus", "MachineStatus", "NicStatus", "SizeStatus"]

Count = Annotated[int, Field(ge=0)]


class SizeStatus(Model):
    """How large the machine is after template and overrides."""

    cpus: Count | None = None
    """Virtual CPUs."""
    memory: Amount | None = None
    """Memory."""
    disk: Amount | None = None
    """The disk to boot from."""


class DiskStatus(Model):
    """A disk as it is."""

    name: str
    """The disk's name."""
    pvc_name: Annotated[str | None, Field(alias="pvcName")] = None
    """Its claim."""
    size: Count | None = None
    """How large the claim is, in bytes."""
    wanted_size: Count | None = None
    """How large it is to become, in bytes, while it grows."""
    storage_class: str | None = None
    """Its StorageClass."""
    volume_mode: str | None = None
    """Whether the storage hands out a file system or a block device."""
    access_modes: Annotated[list[str], Atomic()] = []
    """Who may use it at the same time."""
    type: str | None = None
    """How the guest sees it."""
    device: str | None = None
    """What the guest calls it, where it tells."""
    state: (
        Literal["Pending", "Importing", "Attached", "Growing", "AwaitsRestart", "Detached"] | None
    ) = None
    """Whether the machine has it. Detached ones are kept until somebody deletes the claim."""
    message: Annotated[str, Field(max_length=32768)] | None = None
    """What is left to do, such as growing the file system inside the guest."""


class NicStatus(Model):
    """A network interface as it is."""

    name: str
    """The interface's name within the machine."""
    mac_address: str | None = None
    """Its MAC address."""
    network_name: str | None = None
    """The NetworkConfiguration it is on; without it, the pod network."""
    ip_addresses: Annotated[list[str], Atomic()] = []
    """Its IPv4 addresses."""
    ipv6_addresses: Annotated[list[str], Atomic(), Field(alias="ipv6Addresses")] = []
    """Its IPv6 addresses."""
    state: str | None = None
    """Whether it is up."""


class ImportStatus(Model):
    """How far an image or an install medium has come."""

    source: str
    """Where it comes from."""
    state: Literal["Pending", "Importing", "Ready", "Failed", "Ejected"]
    """Whether it is there; Ejected is for install media."""
    progress: Annotated[int, Field(ge=0, le=100)] | None = None
    """How much is done, in percent."""
    message: Annotated[str, Field(max_length=32768)] | None = None
    """Why it is not there."""


class MachineStatus(Model):
    """What is known of the machine."""

    phase: Literal["Pending", "Creating", "Running", "Stopped", "Failed"] | None = None
    """Its state in one word."""
    conditions: Annotated[list[Condition], ListMap("type")] = []
    """What is so and what is not; Ready sums it up."""
    vm_name: str | None = None
    """The VirtualMachine."""
    vmi_name: str | None = None
    """The VirtualMachineInstance, while there is one."""
    ip_addresses: Annotated[list[str], Atomic()] = []
    """Its addresses, the most useful first."""
    node_name: str | None = None
    """The node it runs on."""
    last_updated: datetime | None = None
    """When this status last changed."""
    resource_version: str | None = None
    """The resourceVersion of the Machine that all this was found out from."""

    observed_generation: Count | None = None
    """The metadata.generation that all this was found out for."""
    size: SizeStatus | None = None
    """How large it is after template and overrides."""
    image: ImportStatus | None = None
    """How far its image has come."""
    iso: ImportStatus | None = None
    """How far its install medium has come, and whether it was ejected."""
    migration: MigrationStatus | None = None
    """The move that is under way, or the last one."""
    snapshots: Annotated[list[SnapshotStatus], ListMap("name")] = []
    """Its snapshots."""
    restore: RestoreStatus | None = None
    """What became of the last restore."""
    snapshot_schedule: ScheduleStatus | None = None
    """How far the schedule of snapshots was followed."""

    message: Annotated[str, Field(max_length=32768)] | None = None
    """Why it is in this phase, in a sentence."""
    state: str | None = None
    """What KubeVirt calls its state."""
    provider_id: Annotated[str | None, Field(alias="providerID")] = None
    """What KubeVirt knows it by."""
    provider: str | None = None
    """Who made it."""
    hostname: str | None = None
    """What the guest is told that it is called."""
    architecture: str | None = None
    """The guest's architecture."""
    operating_system: str | None = None
    """The guest's operating system, where it tells."""
    operating_system_version: str | None = None
    """Its version, where it tells."""
    kernel_version: str | None = None
    """Its kernel, where it tells."""
    cpus: Count | None = None
    """How many CPUs the guest has now."""
    memory: Count | None = None
    """How much memory the guest has now, in bytes."""
    disks: Annotated[list[DiskStatus], ListMap("name")] = []
    """Its disks, and those taken off it and kept."""
    network_interfaces: Annotated[list[NicStatus], ListMap("name")] = []
    """Its network interfaces."""
    ipv6_addresses: Annotated[list[str], Atomic(), Field(alias="ipv6Addresses")] = []
    """Its IPv6 addresses."""
    public_ip_addresses: Annotated[list[str], Atomic(), Field(alias="publicIPAddresses")] = []
    """Those of its addresses that are public."""
    private_ip_addresses: Annotated[list[str], Atomic(), Field(alias="privateIPAddresses")] = []
    """Those of its addresses that are private."""
    boot_time: datetime | None = None
    """When it was last started."""
    creation_time: datetime | None = None
    """When the VirtualMachine was made."""
    failure_reason: str | None = None
    """Why it is Failed, in one word."""
    failure_message: Annotated[str, Field(max_length=32768)] | None = None
    """Why it is Failed, in a sentence."""
