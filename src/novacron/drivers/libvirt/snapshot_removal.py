"""Removes a snapshot from within all disks that it is in, and then its record. Blocks.

libvirt does so by itself where the machine still has the disks that it had then. Where it has let
go of one, or has another in its place, libvirt 9 refuses or dies. So each disk is done by itself
then: by QEMU where a guest runs on it, else by libvirt for a machine that is never started and has
nothing but these disks.
"""

import logging
from contextlib import suppress
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

import libvirt

from novacron.core.machine import Power
from novacron.drivers.libvirt import snapshot_record as on_record
from novacron.drivers.libvirt.errors import sentence
from novacron.drivers.libvirt.look import Domain
from novacron.drivers.libvirt.qemu import ask_qemu, nodes_of
from novacron.drivers.libvirt.snapshot_disks import (
    QCOW2,
    Disk,
    disks_of,
    disks_then,
    is_within,
    taken_over,
)
from novacron.drivers.libvirt.snapshot_record import Note, Record

__all__ = ["KEEPER", "METADATA_ONLY", "discard", "remove_keeper"]

log = logging.getLogger(__name__)

METADATA_ONLY = libvirt.VIR_DOMAIN_SNAPSHOT_DELETE_METADATA_ONLY
# How the machine is called that never runs.
KEEPER = "novacron.loose-disks."


def discard(domain: Domain, record: Record) -> None:
    """Remove a snapshot; what was begun by somebody who died is gone on with."""
    then, now = disks_then(record.handle), disks_of(domain)
    had, having = _places(then), _places(now)
    # A guest's disks are all done at once, and one that came since may have another machine's.
    same = had == having if domain.power is Power.ON else had <= having
    # Where there is a disk that cannot have snapshots QEMU removes none at all.
    if same and all(disk.format == QCOW2 for disk in now):
        record.handle.delete(0)
        return
    in_use = {disk.place for disk in now} if domain.power is Power.ON else set()
    if in_use:
        places = {disk.place for disk in then}
        _from_running(domain, record.name, [disk for disk in now if disk.place in places])
    within = [disk for disk in then if disk.place not in in_use and is_within(disk, record.name)]
    loose = [disk for disk in within if not _is_taken(disk, domain, record.name)]
    if loose:
        _from_loose(domain, record.name, loose)
    record.handle.delete(METADATA_ONLY)


def _is_taken(disk: Disk, domain: Domain, name: str) -> bool:
    """Say whether a disk is another machine's by now: what is within it goes with the volume."""
    if (mark := taken_over(disk, domain)) is None:
        return False
    log.warning("snapshot %s stays within %s, which is %s's now", name, disk.place, mark.name)
    return True


def _places(disks: list[Disk]) -> set[tuple[str, str]]:
    return {(disk.target, disk.place) for disk in disks}


def remove_keeper(connection: libvirt.virConnect, uuid: str) -> None:
    """Remove the machine that never runs, if somebody died who made it."""
    with suppress(libvirt.libvirtError):
        _forget(connection.lookupByName(f"{KEEPER}{uuid}"))


def _from_running(domain: Domain, name: str, disks: list[Disk]) -> None:
    within = [disk for disk in disks if is_within(disk, name)]
    for node in nodes_of(domain.handle, {disk.target: disk.alias for disk in within}):
        ask_qemu(domain.handle, "blockdev-snapshot-delete-internal-sync", device=node, name=name)


def _from_loose(domain: Domain, name: str, disks: list[Disk]) -> None:
    connection, uuid = domain.handle.connect(), domain.handle.UUIDString()
    remove_keeper(connection, uuid)
    keeper = connection.defineXML(_keeper(f"{KEEPER}{uuid}", disks))
    try:
        on_record.write(keeper, name, Note(), datetime.now(UTC))
        keeper.snapshotLookupByName(name).delete(0)
    except libvirt.libvirtError as error:
        # Another machine runs on it by now. What is within it goes with the volume.
        if "lock" not in sentence(error):
            raise
        log.warning("snapshot %s stays within a disk: %s", name, sentence(error))
    finally:
        _forget(keeper)


def _forget(keeper: libvirt.virDomain) -> None:
    keeper.undefineFlags(libvirt.VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA)


def _keeper(name: str, disks: list[Disk]) -> str:
    domain = ET.Element("domain", type="qemu")
    ET.SubElement(domain, "name").text = name
    ET.SubElement(domain, "memory", unit="MiB").text = "1"
    ET.SubElement(ET.SubElement(domain, "os"), "type", arch="x86_64", machine="q35").text = "hvm"
    devices = ET.SubElement(domain, "devices")
    for disk in disks:
        for tag in ("address", "alias", "backingStore"):
            for part in disk.element.findall(tag):
                disk.element.remove(part)
        devices.append(disk.element)
    return ET.tostring(domain, encoding="unicode")
