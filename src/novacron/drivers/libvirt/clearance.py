"""Keeps the images on a host within bounds: the least recently used go, never one in use. Blocks.

The host's own clock is the only one: an image was used when its mark was last written.
"""

from collections.abc import Iterable, Mapping
from xml.etree import ElementTree as ET

import libvirt

from novacron.drivers.libvirt.pool import Pool
from novacron.drivers.libvirt.shelf import InStock, Shelf

__all__ = ["clear_images", "taken_bytes"]

# Longer than anyone takes from finding an image to having a disk on top of it.
GRACE_SECONDS = 120.0


def clear_images(pool: Pool, most_bytes: int, keep: frozenset[str] = frozenset()) -> None:
    """Remove images until the rest is small enough; ``keep`` are volumes that stay."""
    images = list(Shelf(pool.names()).images())
    sizes = {each: _allocated(pool, each) for each in images}
    excess = sum(sizes.values()) - most_bytes
    if excess <= 0:
        return
    try:
        pool.refresh()  # guests' own snapshots are files that libvirt was not told of
    except libvirt.libvirtError:
        return  # it refuses while a volume is being filled, so another time
    used = {each: _used_at(pool, each) for each in images}
    latest = max(used.values())
    for image in sorted(images, key=lambda each: used[each]):
        if excess <= 0:
            return
        old = latest - used[image] > GRACE_SECONDS
        if old and image.volume not in keep and _remove(pool, image):
            excess -= sizes[image]


def taken_bytes(pool: Pool, unfinished: Mapping[str, Iterable[str]]) -> int:
    """Return how much room images take, those included that are only partly there."""
    whole = sum(_allocated(pool, each) for each in Shelf(pool.names()).images())
    partly = (volume for names in unfinished.values() for volume in map(pool.find, names))
    return whole + sum(int(volume.info()[2]) for volume in partly if volume)


def _remove(pool: Pool, image: InStock) -> bool:
    """Remove an image unless a disk is on top of it."""
    volume = pool.find(image.volume)
    if volume is None or volume.path() in _bases(pool):
        return False
    # Nobody finds it from now on; whoever did a moment ago may have a disk on it by now.
    pool.remove(image.mark)
    if not _is_free(pool, volume.path()):
        pool.empty(image.mark, 0, "raw")
        return False
    pool.remove(image.volume)
    return True


def _is_free(pool: Pool, path: str) -> bool:
    """Say whether no disk is on top of an image, nor one that another host made this moment."""
    try:
        pool.refresh()
    except libvirt.libvirtError:
        return False  # it refuses while a volume is being filled, so nobody knows
    return path not in _bases(pool)


def _bases(pool: Pool) -> set[str]:
    """Return every file that something else is on top of."""
    found: set[str] = set()
    for each in pool.connection.listAllStoragePools(libvirt.VIR_CONNECT_LIST_STORAGE_POOLS_ACTIVE):
        for volume in each.listAllVolumes():
            described = _described(volume)
            if described is not None and (path := described.findtext("backingStore/path")):
                found.add(path)
    for domain in pool.connection.listAllDomains():
        try:
            disks = ET.fromstring(domain.XMLDesc()).iterfind("devices/disk//source")  # noqa: S314
        except libvirt.libvirtError:
            continue  # it went this moment
        found |= {path for source in disks if (path := source.get("file"))}
    return found


def _allocated(pool: Pool, image: InStock) -> int:
    volume = pool.find(image.volume)
    return int(volume.info()[2]) if volume else 0


def _used_at(pool: Pool, image: InStock) -> float:
    mark = pool.find(image.mark)
    described = _described(mark) if mark else None
    text = described.findtext("target/timestamps/mtime") if described is not None else None
    return float(text or 0)


def _described(volume: libvirt.virStorageVol) -> ET.Element | None:
    try:
        return ET.fromstring(volume.XMLDesc())  # noqa: S314 - libvirt's own
    except libvirt.libvirtError:
        return None  # it went this moment
