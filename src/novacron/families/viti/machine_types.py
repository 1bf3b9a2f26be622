"""Machine ``vitistack.io/v1alpha1``: a virtual machine that KubeVirt runs."""

from novacron.crd import AGE, Column, CustomResource, Rule, kind
from novacron.families.viti.spec_types import MachineSpec
from novacron.families.viti.status_types import MachineStatus

__all__ = ["Machine"]


@kind(
    group="vitistack.io",
    version="v1alpha1",
    short=("m",),
    categories=("novacron", "vitistack"),
    columns=(
        Column("Phase", ".status.phase"),
        Column("Template", ".spec.template"),
        Column("Class", ".spec.machineClass"),
        Column("IP", ".status.ipAddresses[0]"),
        Column("Node", ".status.nodeName"),
        AGE,
        Column("CPUs", ".status.size.cpus", "integer", 1),
        Column("Memory", ".status.size.memory", priority=1),
        Column("Disk", ".status.size.disk", priority=1),
        Column("State", ".status.state", priority=1),
        Column("Reason", '.status.conditions[?(@.type=="Ready")].reason', priority=1),
    ),
)
class Machine(CustomResource):
    """A virtual machine that KubeVirt runs, kept the way its spec says."""

    __rules__ = (
        Rule(
            "self.metadata.name.size() <= 63"
            " && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
            "metadata.name must be at most 63 lower-case letters, digits and '-', because it is "
            "the label vitistack.io/machine of all that is made for it and the guest's host name",
        ),
    )

    spec: MachineSpec = MachineSpec()
    """What is wanted of the machine."""
    status: MachineStatus | None = None
    """What is known of the machine."""
