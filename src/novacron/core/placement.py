"""The placer's word about one machine, as it is recorded before anything is made."""

from dataclasses import dataclass

from novacron.core.devices import HostDevice
from novacron.core.machine import Machine, Resources
from novacron.core.move import MoveResult

__all__ = ["Placement", "placement_of"]


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a machine is or will be, what of that host is set aside for it, and why there."""

    host: str
    reserved: Resources | None
    devices: tuple[HostDevice, ...] = ()
    because: str = ""


def placement_of(machine: Machine) -> Placement:
    """Return the word about a machine that is placed, as it is now."""
    if machine.host is None:
        raise ValueError(f"{machine.namespace}/{machine.name} has no host yet")
    because, last = machine.placed_because, machine.last_move
    if not because and last and last.result is MoveResult.SUCCEEDED:
        because = f"moved there from host {last.source}"
    reserved = machine.reserved or machine.wanted
    return Placement(machine.host, reserved, machine.devices, because)
