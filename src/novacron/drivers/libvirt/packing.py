"""What a machine with snapshots has to have where it goes, beside what any machine has. Blocks."""

from dataclasses import replace

import libvirt

from novacron.core.errors import Rejected
from novacron.core.machine import Power
from novacron.core.migration import DISK_LOST
from novacron.drivers.libvirt.belongings import Belonging, Belongings
from novacron.drivers.libvirt.disk_files import BASE, QCOW2, base_to_come
from novacron.drivers.libvirt.domain import root_volume
from novacron.drivers.libvirt.look import Domain
from novacron.drivers.libvirt.pool import Pool
from novacron.drivers.libvirt.snapshot_book import as_written
from novacron.drivers.libvirt.snapshot_disks import disks_of
from novacron.drivers.libvirt.snapshot_record import seeds

__all__ = ["packed"]


def packed(pool: Pool, uid: str, domain: Domain | None) -> Belongings:
    """Return all that a machine has; with its files as they are, where it is off."""
    found = Belongings.packed(pool, uid, domain)
    if domain is None or not found.snapshots or domain.power is Power.ON:
        return found
    if pool.find(root_volume(uid)) is None:
        raise Rejected(
            f"its first disk is not in pool {pool.name}, which is its host's own by now: move the "
            "file there, or its snapshots cannot come along",
            reason=DISK_LOST,
        )
    lengths = {
        disk.target: _length(disk.volume)
        for disk in disks_of(domain)
        if disk.format == QCOW2 and disk.volume is not None
    }
    disks = tuple(replace(it, file_bytes=lengths.get(it.target, 0)) for it in found.disks)
    return replace(found, disks=disks + _base(pool, uid, found), papers=_papers(pool, domain))


def _base(pool: Pool, uid: str, found: Belongings) -> tuple[Belonging, ...]:
    if (base := base_to_come(pool, uid)) is None:
        return ()
    name, capacity = base
    return (Belonging(BASE, name, QCOW2, capacity, found.said_in),)


def _papers(pool: Pool, domain: Domain) -> dict[str, bytes]:
    """Return the book of its snapshots, and the first instructions that it had then."""
    book = as_written(domain)
    older = {name: pool.read(name) for name in seeds(domain.handle)}
    return older if book is None else older | {book.name: book.content}


def _length(volume: libvirt.virStorageVol) -> int:
    return int(volume.infoFlags(libvirt.VIR_STORAGE_VOL_GET_PHYSICAL)[2])
