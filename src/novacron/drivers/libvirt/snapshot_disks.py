"""The disks that a snapshot is within: those a machine has now, and those it had then. Blocks."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from xml.etree import ElementTree as ET

import libvirt

from novacron.core.errors import Rejected
from novacron.drivers.libvirt.errors import NOT_THERE, code_of
from novacron.drivers.libvirt.holders import holder
from novacron.drivers.libvirt.look import Domain
from novacron.drivers.libvirt.mark import Mark
from novacron.drivers.libvirt.pool import read_volume
from novacron.drivers.libvirt.qcow2 import Tables, read_snapshots

__all__ = [
    "QCOW2",
    "Disk",
    "disks_let_go",
    "disks_now",
    "disks_of",
    "disks_then",
    "held_bytes",
    "is_within",
    "mistaken_for",
    "taken_over",
]

QCOW2 = "qcow2"


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk that the guest writes to; ``volume`` is None where it is not there any more."""

    target: str
    format: str
    alias: str
    place: str
    volume: libvirt.virStorageVol | None
    element: ET.Element

    @property
    def file(self) -> str:
        """Return what it is called within its pool."""
        return self.place.partition("/")[2]


def disks_now(domain: Domain) -> list[Disk]:
    """Return the disks that the guest writes to; refuse those that cannot have snapshots."""
    found = disks_of(domain)
    for disk in found:
        if disk.format != QCOW2:
            raise Rejected(
                f"disk {disk.target} is {disk.format}, and only qcow2 disks can have snapshots",
                reason="DiskWithoutSnapshots",
            )
    return found


def disks_of(domain: Domain) -> list[Disk]:
    """Return the disks that the guest writes to, or will when it is started."""
    handle = domain.handle
    return list(_disks(ET.fromstring(handle.XMLDesc()), handle.connect()))  # noqa: S314


def disks_then(snapshot: libvirt.virDomainSnapshot) -> list[Disk]:
    """Return the disks that the guest wrote to when a snapshot was taken."""
    tree = ET.fromstring(snapshot.getXMLDesc()).find("domain")  # noqa: S314 - libvirt's own
    return [] if tree is None else list(_disks(tree, snapshot.getConnect()))


def disks_let_go(domain: Domain, snapshot: libvirt.virDomainSnapshot) -> list[Disk]:
    """Return the disks of then that the machine does not have any more."""
    now = {disk.place for disk in disks_of(domain)}
    return [disk for disk in disks_then(snapshot) if disk.place not in now]


def taken_over(disk: Disk, domain: Domain) -> Mark | None:
    """Return the mark of another machine of the host that has a disk, if one does."""
    return holder(domain.handle.connect(), lambda each: each.key == disk.place, domain.uid)


def is_within(disk: Disk, name: str) -> bool:
    """Say whether a snapshot is within a disk, whoever has it on record."""
    tables = _tables(disk)
    return tables is not None and tables.find(name) is not None


def mistaken_for(disk: Disk, name: str) -> str | None:
    """Return the snapshot that QEMU would go back to instead of another: it looks for ids first."""
    tables = _tables(disk)
    within = tables.snapshots if tables else ()
    return next((each.name for each in within if each.id == name != each.name), None)


def held_bytes(disk: Disk, name: str) -> int:
    """Return how much of a disk a snapshot holds."""
    tables = _tables(disk)
    found = tables.find(name) if tables else None
    return tables.held_bytes(found) if tables and found else 0


def _tables(disk: Disk) -> Tables | None:
    # What a guest wrote to a raw disk may look like tables of any length.
    if disk.volume is None or disk.format != QCOW2:
        return None
    return read_snapshots(partial(read_volume, disk.volume))


def _disks(tree: ET.Element, connection: libvirt.virConnect) -> Iterator[Disk]:
    for disk in tree.iterfind("devices/disk"):
        driver, source, target = disk.find("driver"), disk.find("source"), disk.find("target")
        if disk.find("readonly") is not None or source is None or target is None:
            continue
        alias = disk.find("alias")
        yield Disk(
            target=target.get("dev") or "",
            format=(driver.get("type") if driver is not None else None) or "raw",
            alias=(alias.get("name") or "") if alias is not None else "",
            place=f"{source.get('pool')}/{source.get('volume') or source.get('file')}",
            volume=_volume(connection, source),
            element=disk,
        )


def _volume(connection: libvirt.virConnect, source: ET.Element) -> libvirt.virStorageVol | None:
    pool, volume = source.get("pool"), source.get("volume")
    try:
        if pool and volume:
            return connection.storagePoolLookupByName(pool).storageVolLookupByName(volume)
        return connection.storageVolLookupByPath(source.get("file") or source.get("dev") or "")
    except libvirt.libvirtError as error:
        if code_of(error) in NOT_THERE:
            return None
        raise
