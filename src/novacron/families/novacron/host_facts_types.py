"""What is found out about a Host: its CPU, memory, storage and hardware."""

from typing import Annotated

from pydantic import Field

from novacron.crd import Atomic, Model
from novacron.families.shared_types import Amount

__all__ = ["HostCpu", "HostDevice", "HostNuma", "HostStorage", "HostStorageClass"]


class HostCpu(Model):
    """What CPU the host has."""

    model: str | None = None
    """What the hypervisor calls it."""
    features: Annotated[list[str], Atomic()] = []
    """What it can do."""
    guest_model: str | None = None
    """What machines see of it: one that runs can move to a host where they see no less."""
    guest_features: Annotated[list[str], Atomic()] = []
    """What the CPU that machines see can do; it may be more on a host that a machine moves to."""


class HostStorage(Model):
    """One place for disks."""

    name: str
    """What the hypervisor calls it."""
    capacity: Amount
    """How much it holds."""
    available: Amount | None = None
    """How much of that is free, as of when it last changed by a tenth of the whole."""


class HostStorageClass(Model):
    """A kind of storage that volumes ask for by its name."""

    name: str
    """What volumes ask for."""
    allocatable: Amount
    """What may be promised to machines: what the place holds times overcommit, without what kept
    volumes take, and others than machines."""
    storage_id: Annotated[str | None, Field(alias="storageID")] = None
    """What the place is known by, if other hosts may see it too: those with the same have its room
    together."""
    message: str | None = None
    """Why it cannot be used, where it cannot; no machine that asks for it is placed here then."""


class HostNuma(Model):
    """CPUs, and the memory that is near to them."""

    node: Annotated[int, Field(ge=0)]
    """Its number."""
    cpus: str
    """The CPUs, such as 0-7,16-23."""
    memory: Amount
    """How much memory."""


class HostDevice(Model):
    """A piece of hardware that can be handed to a machine."""

    address: str
    """Where the host has it: its PCI address, or the UUID of a mediated device."""
    type: str
    """What it is: gpu, nic, nvme, storage, accelerator, mdev or other."""
    vendor: str
    """Who makes it, as a machine asks for it."""
    model: str
    """Which one, as a machine asks for it."""
    numa_node: Annotated[int, Field(ge=0)] | None = None
    """The NUMA node that it is close to."""
