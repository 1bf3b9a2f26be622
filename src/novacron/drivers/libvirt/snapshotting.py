"""Takes and removes snapshots: blocking pieces of work on one domain.

All of them are within the disks (docs/decisions/0011): no chain of files grows, the definition
stays as it is, and libvirt itself can go back to them.
"""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

import libvirt

from novacron.core.errors import Rejected
from novacron.core.machine import Power
from novacron.core.snapshot import Snapshot, SnapshotOrder
from novacron.drivers.libvirt import snapshot_record as on_record
from novacron.drivers.libvirt.at_rest import MaybeFrozen, at_rest, thaw
from novacron.drivers.libvirt.look import Domain
from novacron.drivers.libvirt.qemu import ask_qemu, nodes_of
from novacron.drivers.libvirt.snapshot_disks import (
    Disk,
    disks_now,
    held_bytes,
    is_within,
)
from novacron.drivers.libvirt.snapshot_record import AMBIGUOUS, MARKER, Note, Record
from novacron.drivers.libvirt.snapshot_removal import METADATA_ONLY, discard

__all__ = ["clear", "list_whole", "remove", "take", "unfinished"]


def list_whole(domain: Domain) -> list[Snapshot]:
    """Return every snapshot of ours that is whole."""
    return [
        record.snapshot()
        for record in on_record.records(domain.handle)
        if record.note.made and record.name != MARKER
    ]


def unfinished(domain: Domain) -> list[str]:
    """Return the names of records that somebody left behind who died."""
    there = list(on_record.records(domain.handle))
    restored = {each.note.restored for each in there if each.name != MARKER}
    return [
        each.name
        for each in there
        # A marker is of use until its request is noted with the snapshot.
        if (each.note.restored in restored if each.name == MARKER else not each.note.made)
    ]


def take(
    domain: Domain, order: SnapshotOrder, lingers: Callable[[], object] = lambda: None
) -> None:
    """Take a snapshot, unless it is there; what somebody left half-done goes first.

    ``lingers`` is called when it is taken but for its guest, whose agent does not let it go on yet.
    libvirt lists one from the moment it begins with it, so what counts is our own note.
    """
    handle = domain.handle
    record = on_record.find(handle, order.name)
    if record is not None and record.note.made:
        return
    _require_no_number(order.name)
    disks = disks_now(domain)
    _require_own(handle, order.name, record)
    _clear_remains(domain, order.name, record, disks)
    quiesced = False
    if domain.power is Power.ON and not order.memory:
        quiesced = _take_beside_guest(domain, order.name, disks, lingers)
    else:
        # Of a guest that runs this is memory too, while it stands still.
        handle.snapshotCreateXML(on_record.written_anew(order.name, Note()), 0)
    record = on_record.find(handle, order.name)
    assert record is not None
    record.noted(handle, made=True, quiesced=quiesced, size=_size(order.name, disks))


def _require_no_number(name: str) -> None:
    """Refuse a name that QEMU may take for the number that it gave another snapshot."""
    if name.isdecimal():
        raise Rejected(
            f"a snapshot cannot be called {name}: QEMU goes by numbers of its own first, and would "
            "go back to another one; choose a name that is not only digits",
            reason=AMBIGUOUS,
        )


def remove(domain: Domain, name: str) -> None:
    """Remove a snapshot; one that is not there is none."""
    record = on_record.find(domain.handle, name)
    if record is not None:
        discard(domain, record)


def clear(domain: Domain, name: str) -> None:
    """Take away what is left of a snapshot, or of a restore, that nobody is at work on."""
    record = on_record.find(domain.handle, name)
    if record is not None and name == MARKER:
        record.handle.delete(METADATA_ONLY)
    elif record is not None and not record.note.made:
        thaw(domain)  # whoever began it may have died while the guest stood still
        _delete(domain, record)


def _clear_remains(domain: Domain, name: str, record: Record | None, disks: list[Disk]) -> None:
    first, *volumes = disks
    if record is not None:
        clear(domain, name)
    elif is_within(first, name):
        # libvirt died after it made one and before that was on record.
        on_record.write(domain.handle, name, Note(), datetime.now(UTC))
        clear(domain, name)
    elif (strange := next((disk for disk in volumes if is_within(disk, name)), None)) is not None:
        # Not of this machine: what it has is within its first disk, which never was another one's.
        raise Rejected(
            f"volume {strange.file} has a snapshot {name} of a machine that had it before; choose "
            "another name",
            reason="SnapshotExists",
        )


def _take_beside_guest(
    domain: Domain, name: str, disks: list[Disk], lingers: Callable[[], object]
) -> bool:
    """Take a snapshot of the disks while the guest runs; say whether it was at rest.

    All disks at one moment. libvirt has no call for it; QEMU does, so it is asked itself.
    """
    handle = domain.handle
    nodes = nodes_of(handle, {disk.target: disk.alias for disk in disks})
    on_record.write(handle, name, Note(), datetime.now(UTC))
    actions = [
        {"type": "blockdev-snapshot-internal-sync", "data": {"device": node, "name": name}}
        for node in nodes
    ]
    try:
        with at_rest(domain, lingers) as quiesced:
            ask_qemu(handle, "transaction", actions=actions)
    except MaybeFrozen:
        raise  # by the record whoever looks next knows that it is to be thawed
    except BaseException:
        with suppress(libvirt.libvirtError):
            handle.snapshotLookupByName(name).delete(METADATA_ONLY)
        raise
    return quiesced


def _delete(domain: Domain, record: Record) -> None:
    try:
        discard(domain, record)
    except libvirt.libvirtError:
        if any(is_within(disk, record.name) for disk in disks_now(domain)):
            raise
        record.handle.delete(METADATA_ONLY)


def _require_own(handle: libvirt.virDomain, name: str, record: Record | None) -> None:
    if record is None and name in handle.snapshotListNames():
        raise Rejected(
            f"somebody else took a snapshot {name} at its host; choose another name",
            reason="SnapshotExists",
        )


def _size(name: str, disks: list[Disk]) -> int:
    return sum(held_bytes(disk, name) for disk in disks)
