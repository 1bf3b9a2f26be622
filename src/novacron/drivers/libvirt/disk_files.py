"""Disks that travel as files, byte for byte, with the snapshots within them. Blocks.

libvirt copies what a guest sees of a disk. A guest that is off is sent as one that is up and never
runs, so it may be told that the file of a disk is the disk: then the whole file is copied. What the
first disk is on top of comes as one disk more, without anything below it, and is the machine's own
from then on: the other host may never have had the image, or have another one by its name.
"""

from functools import partial
from pathlib import PurePosixPath
from xml.etree import ElementTree as ET

import libvirt

from novacron.drivers.libvirt.domain import root_volume, volume_prefix
from novacron.drivers.libvirt.pool import Pool, read_volume
from novacron.drivers.libvirt.qcow2_header import Header
from novacron.drivers.libvirt.storage import COMING, size_of

__all__ = [
    "BASE",
    "QCOW2",
    "as_files",
    "base_to_come",
    "clear_bases",
    "give_back",
    "lend",
    "put_on_base",
    "what_goes_with",
    "with_base",
]

# Where a guest that is only up to be sent has it: no guest has so many disks that this is taken.
BASE = "vdzz"
MIB = 1024 * 1024
QCOW2 = "qcow2"


def base_to_come(pool: Pool, uid: str) -> tuple[str, int] | None:
    """Return how what the first disk is on top of will be called elsewhere, and how large it is."""
    if (base := _base(pool, uid)) is None or (volume := pool.find(base)) is None:
        return None
    return _other_name(uid, base), _whole_mib(volume) * MIB


def lend(pool: Pool, uid: str) -> str | None:
    """Make what a guest may have as a disk in place of that: an empty one on top of it.

    Others are on top of it too, so that nobody may have it for writing.
    """
    if (base := _base(pool, uid)) is None or (volume := pool.find(base)) is None:
        return None
    name, kind = _other_name(uid, base), PurePosixPath(base).suffix.removeprefix(".")
    pool.remove(name)
    pool.overlay(name, _whole_mib(volume), base, kind)
    return name


def give_back(pool: Pool, uid: str) -> None:
    """Remove what was lent for a move that came to nothing."""
    if pool.find(root_volume(uid)) is None:
        return  # it may be away for a while, and then nobody can tell what it is on top of
    base, lent = _base(pool, uid), _bases(pool, uid)
    if any(name.endswith(COMING) for name in lent) or (base and pool.find(base) is None):
        return  # it came, and is still to be put on top of one of them
    for name in lent - {base}:
        pool.remove(name)


def clear_bases(pool: Pool, uid: str) -> None:
    """Remove what came for a first disk that did not, in a move that nobody remembers."""
    for mark in sorted(name for name in _bases(pool, uid) if name.endswith(COMING)):
        pool.remove(mark.removesuffix(COMING))
        pool.remove(mark)


def what_goes_with(pool: Pool, uid: str) -> frozenset[str]:
    """Return what a first disk is of no use without, where it is not one that was to come."""
    every = pool.names()
    coming = {name for name in every if f"{name}{COMING}" in every}
    parts = tuple(f"{volume_prefix(uid)}{part}-" for part in ("base", "snapshots", "seed"))
    found = {name for name in every if name.startswith(parts) and not name.endswith(COMING)}
    return frozenset(found - coming)


def put_on_base(pool: Pool, uid: str) -> None:
    """Have a first disk that has come be on top of what has come with it."""
    root = root_volume(uid)
    if (volume := pool.find(root)) is None:
        return  # it may be away for a while
    for mark in (name for name in _bases(pool, uid) if name.endswith(COMING)):
        if (header := _header(volume)) is not None:
            base = mark.removesuffix(COMING)
            pool.write_over(root, header.on(f"{pool.path}/{base}", QCOW2))
        pool.remove(mark)


def as_files(xml: str, targets: tuple[str, ...]) -> str:
    """Return a domain that takes the files of these disks for the disks."""
    domain = ET.fromstring(xml)  # noqa: S314 - libvirt's own
    for disk in domain.iterfind("devices/disk"):
        driver, target = disk.find("driver"), disk.find("target")
        if driver is not None and target is not None and target.get("dev") in targets:
            driver.attrib.clear()
            driver.attrib |= {"name": "qemu", "type": "raw"}
    return ET.tostring(domain, encoding="unicode")


def with_base(xml: str, pool: Pool, name: str) -> str:
    """Return a domain that has what was lent as one disk more."""
    domain = ET.fromstring(xml)  # noqa: S314 - libvirt's own
    devices = domain.find("devices")
    assert devices is not None
    disk = ET.SubElement(devices, "disk", type="volume", device="disk")
    ET.SubElement(disk, "driver", name="qemu", type=QCOW2)
    ET.SubElement(disk, "source", pool=pool.name, volume=name)
    ET.SubElement(disk, "target", dev=BASE, bus="virtio")
    return ET.tostring(domain, encoding="unicode")


def _bases(pool: Pool, uid: str) -> frozenset[str]:
    return frozenset(name for name in pool.names() if name.startswith(_prefix(uid)))


def _base(pool: Pool, uid: str) -> str | None:
    """Return the file that a machine's first disk is on top of."""
    volume = pool.find(root_volume(uid))
    header = None if volume is None else _header(volume)
    return None if header is None else PurePosixPath(header.backing).name


def _header(volume: libvirt.virStorageVol) -> Header | None:
    return Header.of(partial(read_volume, volume))


def _whole_mib(volume: libvirt.virStorageVol) -> int:
    return -(-size_of(volume) // MIB)


def _other_name(uid: str, base: str) -> str:
    """Return a name that it has not yet, as both are on one host for a while."""
    first, second = (f"{_prefix(uid)}{number}.{QCOW2}" for number in (1, 2))
    return second if base == first else first


def _prefix(uid: str) -> str:
    return f"{volume_prefix(uid)}base-"
