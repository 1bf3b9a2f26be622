"""Disks: those of a template joined with a machine's own by name, and how storage serves them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from novacron.core.errors import Rejected
from novacron.core.quantity import mib
from novacron.families.viti.templates import ROOT
from novacron.families.viti.values import VIRTIO, Disk

__all__ = ["MANY", "ONCE", "ClaimModes", "boot_disk", "claim_modes", "merged_disks"]

Object = dict[str, Any]

ONCE, MANY = "ReadWriteOnce", "ReadWriteMany"
FILESYSTEM = "Filesystem"


def merged_disks(template: Iterable[Object], own: Iterable[Object]) -> tuple[Disk, ...]:
    """Return the template's disks with the machine's changes, then those that are only its own.

    A field that the machine does not say is the template's. Exactly one disk boots.
    """
    joined: dict[str, Object] = {each["name"]: _plain(each) for each in template}
    for each in own:
        joined[each["name"]] = joined.get(each["name"], {}) | _plain(each)
    disks = [_disk(each) for each in joined.values()]
    boots = boot_disk(disks)
    return tuple(replace(disk, boot=disk is boots) for disk in disks)


def boot_disk(disks: Sequence[Disk]) -> Disk | None:
    """Return the disk to boot from: the one that says so, else root, else the first."""
    said = next((disk for disk in disks if disk.boot), None)
    root = next((disk for disk in disks if disk.name == ROOT), None)
    return said or root or next(iter(disks), None)


def _plain(disk: Object) -> Object:
    """Return the disk with its size in one word."""
    said = {name: value for name, value in disk.items() if name != "sizeGB"}
    return said | ({"size": f"{disk['sizeGB']}Gi"} if "sizeGB" in disk else {})


def _disk(disk: Object) -> Disk:
    if "size" not in disk:
        raise Rejected(
            f"disk {disk['name']} has no size, and the template has no disk of this name: set its "
            "size",
            reason="DiskSizeMissing",
        )
    return Disk(
        name=disk["name"],
        size_mib=mib(disk["size"]),
        storage_class=disk.get("storageClass"),
        access_mode=disk.get("accessMode"),
        volume_mode=disk.get("volumeMode"),
        bus=disk.get("type", VIRTIO),
        boot=disk.get("boot", False),
        retain=disk.get("reclaimPolicy") == "Retain",
    )


@dataclass(frozen=True, slots=True)
class ClaimModes:
    """How a claim asks for its storage."""

    access: str
    volume: str


def claim_modes(disk: Disk, properties: Sequence[Object] = ()) -> ClaimModes:
    """Return the modes of a disk's claim.

    ``properties`` are the claimPropertySets of the class's StorageProfile, best first, where there
    is one. What the disk says counts; what it does not say is what lets machines move while they
    run, or else what the storage does best, or else what every storage can.
    """
    offers = [
        ClaimModes(access, each.get("volumeMode") or FILESYSTEM)
        for each in properties
        for access in each.get("accessModes") or ()
    ]
    fitting = [
        offer
        for offer in offers
        if disk.access_mode in (None, offer.access) and disk.volume_mode in (None, offer.volume)
    ]
    best = next((offer for offer in fitting if offer.access == MANY), None)
    found = best or next(iter(fitting), ClaimModes(ONCE, FILESYSTEM))
    return ClaimModes(disk.access_mode or found.access, disk.volume_mode or found.volume)
