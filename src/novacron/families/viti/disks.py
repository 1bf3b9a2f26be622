"""Disks: those of a template joined with a machine's own by name."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from novacron.core.errors import Rejected
from novacron.core.quantity import mib
from novacron.families.viti.templates import ROOT
from novacron.families.viti.values import VIRTIO, Disk

__all__ = ["boot_disk", "merged_disks"]

Object = dict[str, Any]


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
