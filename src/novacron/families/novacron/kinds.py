"""All kinds of this family, each with all its served versions, the newest first."""

from novacron.crd import CustomResource
from novacron.families.novacron.host_types import Host
from novacron.families.novacron.types import VirtualMachine

__all__ = ["RESOURCES", "Host", "VirtualMachine"]

RESOURCES: tuple[tuple[type[CustomResource], ...], ...] = ((VirtualMachine,), (Host,))
