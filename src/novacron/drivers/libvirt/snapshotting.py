"""Takes, restores and removes snapshots: blocking pieces of work on one domain.

All of them are within the disks (docs/decisions/0011): no chain of files grows, the definition
stays as it is, and libvirt itself can go back to them.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from xml.etree import ElementTree as ET

import libvirt

from novacron.core.errors import Busy, Rejected
from novacron.core.machine import Power
from novacron.core.snapshot import RestoreOrder, Snapshot, SnapshotOrder
from novacron.drivers.libvirt import snapshot_record as on_record
from novacron.drivers.libvirt.look import Domain
from novacron.drivers.libvirt.pool import read_volume
from novacron.drivers.libvirt.qcow2 import read_snapshots
from novacron.drivers.libvirt.snapshot_record import MARKER, Note, Record

__all__ = ["clear", "list_whole", "remove", "restore", "take", "unfinished"]

AGENT_SECONDS = 5
METADATA_ONLY = libvirt.VIR_DOMAIN_SNAPSHOT_DELETE_METADATA_ONLY


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk that the guest writes to."""

    target: str
    format: str
    alias: str
    volume: libvirt.virStorageVol


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


def take(domain: Domain, order: SnapshotOrder) -> None:
    """Take a snapshot, unless it is there; what somebody left half-done goes first.

    libvirt lists one from the moment it begins with it, so what counts is our own note.
    """
    handle = domain.handle
    record = on_record.find(handle, order.name)
    if record is not None and record.note.made:
        return
    disks = _disks(domain)
    _require_own(handle, order.name, record)
    _clear_remains(domain, order.name, record, disks)
    quiesced = False
    if domain.power is Power.ON and not order.memory:
        quiesced = _take_beside_guest(domain, order.name, disks)
    else:
        # Of a guest that runs this is memory too, while it stands still.
        handle.snapshotCreateXML(on_record.written_anew(order.name, Note()), 0)
    record = on_record.find(handle, order.name)
    assert record is not None
    record.noted(handle, made=True, quiesced=quiesced, size=_size(order.name, disks))


def restore(domain: Domain, order: RestoreOrder) -> None:
    """Go back to a snapshot, unless this very request was carried out already.

    libvirt makes a snapshot the current one together with going back to it. So a marker is made
    the current one before: while it is, nobody went back.
    """
    handle = domain.handle
    record = on_record.find(handle, order.snapshot)
    if record is None or not record.note.made:
        raise Rejected(f"there is no snapshot {order.snapshot}", reason="SnapshotNotFound")
    if record.note.restored != order.request:
        marker = on_record.find(handle, MARKER)
        if marker is None or marker.note.restored != order.request:
            note = Note(made=True, restored=order.request)
            on_record.write(handle, MARKER, note, datetime.now(UTC), current=True)
        if not record.handle.isCurrent():
            handle.revertToSnapshot(record.handle, libvirt.VIR_DOMAIN_SNAPSHOT_REVERT_FORCE)
        record.noted(handle, restored=order.request)
    if (marker := on_record.find(handle, MARKER)) is not None:
        marker.handle.delete(METADATA_ONLY)


def remove(domain: Domain, name: str) -> None:
    """Remove a snapshot; one that is not there is none."""
    record = on_record.find(domain.handle, name)
    if record is not None:
        record.handle.delete(0)


def clear(domain: Domain, name: str) -> None:
    """Take away what is left of a snapshot, or of a restore, that nobody is at work on."""
    record = on_record.find(domain.handle, name)
    if record is not None and name == MARKER:
        record.handle.delete(METADATA_ONLY)
    elif record is not None and not record.note.made:
        _thaw(domain)  # whoever began it may have died while the guest stood still
        _delete(domain, record)


def _clear_remains(domain: Domain, name: str, record: Record | None, disks: list[Disk]) -> None:
    if record is not None:
        clear(domain, name)
    elif any(_within(disk, name) for disk in disks):
        # libvirt died after it made one and before that was on record.
        on_record.write(domain.handle, name, Note(), datetime.now(UTC))
        clear(domain, name)


def _take_beside_guest(domain: Domain, name: str, disks: list[Disk]) -> bool:
    """Take a snapshot of the disks while the guest runs; say whether it was at rest.

    All disks at one moment. libvirt has no call for it; QEMU does, so it is asked itself.
    """
    handle = domain.handle
    nodes = _nodes(handle, disks)
    on_record.write(handle, name, Note(), datetime.now(UTC))
    actions = [
        {"type": "blockdev-snapshot-internal-sync", "data": {"device": node, "name": name}}
        for node in nodes
    ]
    try:
        with _at_rest(domain) as quiesced:
            _ask_qemu(handle, "transaction", actions=actions)
    except BaseException:
        with suppress(libvirt.libvirtError):
            handle.snapshotLookupByName(name).delete(METADATA_ONLY)
        raise
    return quiesced


@contextmanager
def _at_rest(domain: Domain) -> Iterator[bool]:
    """Have the guest's file systems at rest, where its agent can; say whether they are."""
    frozen = False
    if domain.running is not None and domain.running.agent:
        with suppress(libvirt.libvirtError):
            domain.handle.agentSetResponseTimeout(AGENT_SECONDS)
            domain.handle.fsFreeze()
            frozen = True
    try:
        yield frozen
    finally:
        if domain.running is not None and domain.running.agent:
            _thaw(domain)  # also where it did not answer in time: it may have done it after all


def _thaw(domain: Domain) -> None:
    if domain.running is not None:
        with suppress(libvirt.libvirtError):  # no agent, or nothing was frozen
            domain.handle.agentSetResponseTimeout(AGENT_SECONDS)
            domain.handle.fsThaw()


def _delete(domain: Domain, record: Record) -> None:
    try:
        record.handle.delete(0)
    except libvirt.libvirtError:
        if any(_within(disk, record.name) for disk in _disks(domain)):
            raise
        record.handle.delete(METADATA_ONLY)


def _require_own(handle: libvirt.virDomain, name: str, record: Record | None) -> None:
    if record is None and name in handle.snapshotListNames():
        raise Rejected(
            f"somebody else took a snapshot {name} at its host; choose another name",
            reason="SnapshotExists",
        )


def _disks(domain: Domain) -> list[Disk]:
    """Return the disks that the guest writes to; refuse those that cannot have snapshots."""
    handle = domain.handle
    tree = ET.fromstring(handle.XMLDesc())  # noqa: S314 - libvirt's own
    found: list[Disk] = []
    for disk in tree.iterfind("devices/disk"):
        driver, source, target = disk.find("driver"), disk.find("source"), disk.find("target")
        if disk.find("readonly") is not None or source is None or target is None:
            continue
        kind = (driver.get("type") if driver is not None else None) or "raw"
        name = target.get("dev") or ""
        if kind != "qcow2":
            raise Rejected(
                f"disk {name} is {kind}, and only qcow2 disks can have snapshots",
                reason="DiskWithoutSnapshots",
            )
        alias = disk.find("alias")
        found.append(
            Disk(
                name,
                kind,
                (alias.get("name") or "") if alias is not None else "",
                _volume(handle.connect(), source),
            )
        )
    return found


def _volume(connection: libvirt.virConnect, source: ET.Element) -> libvirt.virStorageVol:
    pool, volume = source.get("pool"), source.get("volume")
    if pool and volume:
        return connection.storagePoolLookupByName(pool).storageVolLookupByName(volume)
    return connection.storageVolLookupByPath(source.get("file") or source.get("dev") or "")


def _nodes(handle: libvirt.virDomain, disks: list[Disk]) -> list[str]:
    devices = _ask_qemu(handle, "query-block")
    assert isinstance(devices, list)
    nodes = {
        disk.target: device["inserted"]["node-name"]
        for disk in disks
        for device in devices
        if f"/{disk.alias}/" in f"{device.get('qdev')}/" and device.get("inserted")
    }
    missing = [disk.target for disk in disks if disk.target not in nodes]
    if missing:
        raise Busy(f"QEMU does not know disk {', '.join(missing)} at the moment")
    return list(nodes.values())


def _ask_qemu(handle: libvirt.virDomain, command: str, **arguments: object) -> object:
    # Loaded when it is needed, as everything of libvirt is.
    import libvirt_qemu  # noqa: PLC0415

    question = json.dumps({"execute": command, "arguments": arguments})
    answer = json.loads(libvirt_qemu.qemuMonitorCommand(handle, question, 0))
    if "error" in answer:
        raise Busy(f"QEMU refuses it: {answer['error'].get('desc', 'no reason given')}")
    return answer["return"]


def _within(disk: Disk, name: str) -> bool:
    tables = read_snapshots(partial(read_volume, disk.volume))
    return tables is not None and tables.find(name) is not None


def _size(name: str, disks: list[Disk]) -> int:
    total = 0
    for disk in disks:
        tables = read_snapshots(partial(read_volume, disk.volume))
        found = tables.find(name) if tables else None
        total += tables.held_bytes(found) if tables and found else 0
    return total
