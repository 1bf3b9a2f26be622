"""Brings a machine back to a snapshot: a blocking piece of work on one domain.

libvirt makes a snapshot the current one together with going back to it. So a marker is made the
current one before: while it is, nobody went back.
"""

from datetime import UTC, datetime

import libvirt

from novacron.core.errors import Rejected
from novacron.core.snapshot import RestoreOrder
from novacron.drivers.libvirt import snapshot_record as on_record
from novacron.drivers.libvirt.errors import passes, sentence
from novacron.drivers.libvirt.fitted import id_of
from novacron.drivers.libvirt.look import Domain, read
from novacron.drivers.libvirt.snapshot_disks import (
    disks_let_go,
    disks_then,
    is_within,
    mistaken_for,
    taken_over,
)
from novacron.drivers.libvirt.snapshot_record import AMBIGUOUS, MARKER, Note, Record
from novacron.drivers.libvirt.snapshot_removal import METADATA_ONLY
from novacron.drivers.libvirt.writing import note_guest

__all__ = ["restore"]


def restore(domain: Domain, order: RestoreOrder) -> None:
    """Go back to a snapshot, unless this very request was carried out already."""
    handle = domain.handle
    record = on_record.find(handle, order.snapshot)
    if record is None or not record.note.made:
        raise Rejected(f"there is no snapshot {order.snapshot}", reason="SnapshotNotFound")
    if record.note.restored != order.request:
        _require_own_disks(domain, record, order)
        _require_whole(record)
        _require_unmistakable(record)
        marker = on_record.find(handle, MARKER)
        if marker is None or marker.note.restored != order.request:
            note = Note(made=True, restored=order.request)
            on_record.write(handle, MARKER, note, datetime.now(UTC), current=True)
        if not record.handle.isCurrent():
            _go_back(handle, record)
        if (back := read(handle)) is not None:
            note_guest(back)  # the snapshot may be of a time when there was none
        record.noted(handle, restored=order.request)
    _take_marker_away(handle)


def _go_back(handle: libvirt.virDomain, record: Record) -> None:
    """Have libvirt go back; it has ended the guest by the time it finds out that it cannot."""
    try:
        handle.revertToSnapshot(record.handle, libvirt.VIR_DOMAIN_SNAPSHOT_REVERT_FORCE)
    except libvirt.libvirtError as error:
        if passes(error) or not handle.connect().isAlive():
            raise
        _take_marker_away(handle)
        raise Rejected(
            f"its host could not go back to snapshot {record.name}: {sentence(error)}; the guest "
            "was ended for that, and its disks may be as they were then",
            reason="RestoreFailed",
        ) from error


def _take_marker_away(handle: libvirt.virDomain) -> None:
    if (marker := on_record.find(handle, MARKER)) is not None:
        marker.handle.delete(METADATA_ONLY)


def _require_own_disks(domain: Domain, record: Record, order: RestoreOrder) -> None:
    """Refuse to go back with a disk that has become another machine's, and has its data."""
    for disk in disks_let_go(domain, record.handle):
        other = order.elsewhere.get(id_of(disk.file))
        if (mark := taken_over(disk, domain)) is not None:
            other = mark.name
        if other is not None:
            raise Rejected(
                f"snapshot {record.name} cannot be restored: disk {disk.place}, which the machine "
                f"had then, is {other}'s now: take it off that machine first",
                reason="VolumeInUse",
            )


def _require_whole(record: Record) -> None:
    """Refuse to go back with some disks only, as libvirt would."""
    for disk in disks_then(record.handle):
        if not is_within(disk, record.name):
            gone = "is gone" if disk.volume is None else "was made anew since"
            raise Rejected(
                f"snapshot {record.name} cannot be restored: disk {disk.place}, which the machine "
                f"had then, {gone}",
                reason="SnapshotIncomplete",
            )


def _require_unmistakable(record: Record) -> None:
    """Refuse to go back to another snapshot, as QEMU would where that has the name for a number."""
    for disk in disks_then(record.handle):
        if (other := mistaken_for(disk, record.name)) is not None:
            raise Rejected(
                f"snapshot {record.name} cannot be restored: QEMU would take its name for the "
                f"number of snapshot {other} within disk {disk.place}, and go back to that: delete "
                f"{other} first, if you can do without it",
                reason=AMBIGUOUS,
            )
