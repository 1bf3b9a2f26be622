"""MachineClass ``vitistack.io/v1alpha1``: a size that Machines choose by its name."""

from typing import Annotated, Literal

from pydantic import Field

from novacron.crd import AGE, Column, CustomResource, ListMap, ListSet, Model, Rule, kind
from novacron.families.shared_types import Text
from novacron.families.viti.disk_types import MAX_DISKS, ClassDisk
from novacron.families.viti.size_types import ClassCpu, Size

__all__ = ["MachineClass"]


class ClassMemory(Model):
    """The memory of machines of a class."""

    __rules__ = (
        Rule(
            "!has(self.minQuantity)"
            " || !quantity(string(self.quantity)).isLessThan(quantity(string(self.minQuantity)))",
            "quantity must not be below minQuantity",
            field_path=".minQuantity",
        ),
        Rule(
            "!has(self.maxQuantity) || !quantity(string(self.quantity))"
            ".isGreaterThan(quantity(string(self.maxQuantity)))",
            "quantity must not be above maxQuantity",
            field_path=".maxQuantity",
        ),
    )

    quantity: Size
    """How much they have unless they say otherwise."""
    min_quantity: Size | None = None
    """The least they may ask for."""
    max_quantity: Size | None = None
    """The most they may ask for."""


class ClassGpu(Model):
    """The GPU of machines of a class."""

    cores: Annotated[int, Field(ge=0)]
    """How many cores; machines of a class with any cannot be made here yet."""
    manufacturer: Text | None = None
    """Who makes it."""


class MachineClassSpec(Model):
    """What machines of the class have."""

    enabled: bool = True
    """Whether machines may use it; those that do already are left as they are."""
    default: bool = False
    """Whether machines that name no template use it; one class at most."""
    category: Annotated[str, Field(max_length=63)] = "Standard"
    """What sort of class it is, for people."""
    cpu: ClassCpu
    """CPUs."""
    memory: ClassMemory
    """Memory."""
    disks: Annotated[list[ClassDisk], ListMap("name"), Field(max_length=MAX_DISKS)] = []
    """Disks; without any, a machine that lists none has one of 10Gi called root."""
    machine_providers: Annotated[
        list[Literal["kubevirt", "proxmox"]], ListSet(), Field(max_length=8)
    ] = []
    """Whose machines may use it; without any, everybody's."""
    gpu: ClassGpu | None = None
    """GPU."""
    description: Annotated[str, Field(max_length=1024)] | None = None
    """What it is for."""
    display_name: Annotated[str, Field(max_length=253)] | None = None
    """What people call it."""


class MachineClassStatus(Model):
    """What is known of the class."""

    name: str | None = None
    """Upstream's."""
    phase: str | None = None
    """Upstream's."""
    status: str | None = None
    """Upstream's."""
    message: str | None = None
    """Upstream's."""
    created: str | None = None
    """Upstream's."""


@kind(
    group="vitistack.io",
    version="v1alpha1",
    plural="machineclasses",
    # Upstream says mc, which OpenShift's MachineConfig has.
    short=("mclass",),
    scope="Cluster",
    categories=("vitistack",),
    columns=(
        Column("CPUs", ".spec.cpu.cores", "integer"),
        Column("Memory", ".spec.memory.quantity"),
        Column("Default", ".spec.default", "boolean"),
        Column("Enabled", ".spec.enabled", "boolean"),
        AGE,
        Column("Category", ".spec.category", priority=1),
        Column("Display Name", ".spec.displayName", priority=1),
        Column("Sockets", ".spec.cpu.sockets", "integer", 1),
        Column("Threads", ".spec.cpu.threads", "integer", 1),
    ),
)
class MachineClass(CustomResource):
    """A size that machines choose by its name."""

    __rules__ = (
        Rule(
            "self.metadata.name.size() <= 63"
            " && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
            "metadata.name must be at most 63 lower-case letters, digits and '-', because machines "
            "name it in spec.template",
        ),
    )

    spec: MachineClassSpec
    """What machines of the class have."""
    status: MachineClassStatus | None = None
    """What is known of the class."""
