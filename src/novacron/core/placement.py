"""The placer's word about one machine, as it is recorded before anything is made."""

from dataclasses import dataclass

from novacron.core.devices import HostDevice
from novacron.core.machine import Resources

__all__ = ["Placement"]


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a machine is or will be, what of that host is set aside for it, and why there."""

    host: str
    reserved: Resources | None
    devices: tuple[HostDevice, ...] = ()
    because: str = ""
