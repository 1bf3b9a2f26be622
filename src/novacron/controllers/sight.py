"""Which hosts see the disks of a machine, by what hosts say of the places that they see.

Only to try those first who do: what was written of a host may be old, and the host itself says
whether it has a disk.
"""

from novacron.controllers.ledger import Ledger
from novacron.core.host import DeclaredHost
from novacron.core.machine import Machine
from novacron.core.volume import Access

__all__ = ["blind"]


def blind(machine: Machine, ledger: Ledger, *, lost: bool) -> frozenset[str]:
    """Return the hosts that do not see disks of a machine which cannot be copied to them."""
    source = ledger.declared.get(machine.host or "")
    if source is None or not (places := _needed(machine, source, lost=lost)):
        return frozenset()
    return frozenset(name for name, it in ledger.declared.items() if not places <= it.storage_ids)


def _needed(machine: Machine, source: DeclaredHost, *, lost: bool) -> frozenset[str]:
    """Return the places of those disks: of a host that is off none is copied."""
    whole = lost or any(not each.lost for each in machine.snapshots.kept)
    classes = {
        each.storage_class for each in machine.volumes if whole or each.access is Access.READ_ONLY
    }
    found = {room.id for room in source.rooms if room.storage_class in classes}
    if whole or None in classes:
        found.add(source.own_storage)
    return frozenset(found - {""})
