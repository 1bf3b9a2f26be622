"""Which hosts see the disks of a machine, by what hosts say of the places that they see.

Only to try those first who do: what was written of a host may be old, and the host itself says
whether it has a disk.
"""

from novacron.controllers.ledger import Ledger
from novacron.core.host import DeclaredHost
from novacron.core.machine import Machine
from novacron.core.volume import COMMON

__all__ = ["blind", "only_stopped"]


def blind(machine: Machine, ledger: Ledger, *, lost: bool) -> frozenset[str]:
    """Return the hosts that do not see disks of a machine which cannot be copied to them."""
    source = ledger.declared.get(machine.host or "")
    if source is None or not (places := _needed(machine, source, lost=lost)):
        return frozenset()
    return frozenset(name for name, it in ledger.declared.items() if not places <= it.storage_ids)


def only_stopped(machine: Machine, ledger: Ledger) -> frozenset[str]:
    """Return the hosts to which disks of a machine can be copied only while it is off."""
    source = ledger.declared.get(machine.host or "")
    if source is None or not (places := _places(source, _left_by_a_guest(machine))):
        return frozenset()
    return frozenset(name for name, it in ledger.declared.items() if not places <= it.storage_ids)


def _needed(machine: Machine, source: DeclaredHost, *, lost: bool) -> frozenset[str]:
    """Return the places of those disks: of a host that is off none is copied."""
    if lost:
        return _places(source, _all(machine))
    common = {it.storage_class for it in machine.volumes if it.access in COMMON}
    return _places(source, common | _left_by_a_guest(machine))


def _left_by_a_guest(machine: Machine) -> set[str | None]:
    """Return the classes of disks that would not come whole with a guest that runs.

    With snapshots that is each of them; a volume that awaits a restart is not the guest's yet.
    """
    if any(not each.lost for each in machine.snapshots.kept):
        return _all(machine)
    return set(machine.awaiting_restart)


def _all(machine: Machine) -> set[str | None]:
    return {None, *(each.storage_class for each in machine.volumes)}


def _places(source: DeclaredHost, classes: set[str | None]) -> frozenset[str]:
    found = {room.id for room in source.rooms if room.storage_class in classes}
    if None in classes:
        found.add(source.own_storage)
    return frozenset(found - {""})
