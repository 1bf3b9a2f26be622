"""All kinds of this family, each with all its served versions, the newest first."""

from novacron.crd import CustomResource
from novacron.families.viti.class_types import MachineClass
from novacron.families.viti.machine_types import Machine
from novacron.families.viti.network_types import NetworkConfiguration

__all__ = ["RESOURCES", "Machine", "MachineClass", "NetworkConfiguration"]

RESOURCES: tuple[tuple[type[CustomResource], ...], ...] = (
    (Machine,),
    (NetworkConfiguration,),
    (MachineClass,),
)
