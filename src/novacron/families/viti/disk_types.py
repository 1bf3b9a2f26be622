"""Disks of a Machine or a MachineClass, and what about them cannot change."""

from typing import Annotated, Literal

from pydantic import Field

from novacron.crd import Model, Rule
from novacron.families.shared_types import Name
from novacron.families.viti.size_types import Size

__all__ = [
    "GIB",
    "MAX_DISKS",
    "AccessMode",
    "ClassDisk",
    "Disk",
    "StorageClassName",
    "VolumeMode",
    "disks_stay_what_they_are",
    "size_of",
    "sized",
]

MAX_DISKS = 32
GIB = 2**30

AccessMode = Literal["ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany"]
VolumeMode = Literal["Filesystem", "Block"]
StorageClassName = Annotated[str, Field(min_length=1, max_length=253)]
DiskName = Annotated[
    Name,
    Rule(
        "!(self in ['cloudinitdisk', 'iso'])",
        "cloudinitdisk and iso are what the machine's own media are called: choose another name",
    ),
]


class ClassDisk(Model):
    """A disk that every machine of a class has."""

    name: DiskName
    """The disk's name; a machine changes it by a disk of the same name."""
    size: Size
    """How large it is."""
    storage_class: StorageClassName | None = None
    """The StorageClass; default, or nothing, is the cluster's default one."""
    access_mode: AccessMode | None = None
    """Who may use it at the same time; without it, what the storage does best."""
    volume_mode: VolumeMode | None = None
    """Whether the storage hands out a file system or a block device."""


class Disk(Model):
    """A disk: one of the template's by its name with changes, or one more."""

    __rules__ = (
        Rule(
            "!has(self.size) || !has(self.sizeGB)",
            "size and sizeGB both say how large the disk is: leave one out",
            field_path=".sizeGB",
            reason="FieldValueForbidden",
        ),
        Rule(
            "!self.?encrypted.orValue(false)",
            "KubeVirt encrypts no disks: name a storageClass that does and leave encrypted out",
            field_path=".encrypted",
            reason="FieldValueForbidden",
        ),
    )

    name: DiskName
    """The disk's name; its claim is called after the machine and it."""
    size: Size | None = None
    """How large it is; it may grow and never shrink. Without it, as large as the template's."""
    storage_class: StorageClassName | None = None
    """The StorageClass; default, where no class has that name, is the cluster's default one."""
    access_mode: AccessMode | None = None
    """Who may use it at the same time; without it, what the storage does best. Machines move while
    they run only with ReadWriteMany."""
    volume_mode: VolumeMode | None = None
    """Whether the storage hands out a file system or a block device; without it, what it does
    best."""
    reclaim_policy: Literal["Delete", "Retain"] | None = None
    """What becomes of the claim when the machine is deleted; without it, it is deleted. One whose
    disk is taken off the list is kept in either case."""
    size_gb: Annotated[int | None, Field(alias="sizeGB", ge=1, le=65536)] = None
    """Upstream's word for size, in Gi."""
    type: Literal["virtio", "sata", "scsi"] | None = None
    """How the guest sees the disk; without it, virtio."""
    boot: bool | None = None
    """Whether this is the disk to boot from; without any, that is root or else the first."""
    device: Annotated[str, Field(max_length=63)] | None = None
    """Upstream's; the guest names devices itself, so this has no effect."""
    encrypted: bool | None = None
    """Upstream's; only false can be had."""
    iops: Annotated[int, Field(ge=100, le=64000)] | None = None
    """Upstream's; has no effect."""
    throughput: Annotated[int, Field(ge=125, le=4000)] | None = None
    """Upstream's; has no effect."""


def sized(disk: str) -> str:
    """Return how CEL finds out whether a disk says its size."""
    return f"(has({disk}.size) || has({disk}.sizeGB))"


def size_of(disk: str) -> str:
    """Return how CEL reads the size of a disk that says one in either way, in bytes."""
    return (
        f"(has({disk}.size) ? quantity(string({disk}.size)).asApproximateFloat()"
        f" : double({disk}.sizeGB) * {GIB}.0)"
    )


def disks_stay_what_they_are(disks: str) -> tuple[Rule, ...]:
    """Return the rules that disks grow and change in no other way, by where the list is."""
    pairs = f"!has(self.{disks}) || !has(oldSelf.{disks}) || self.{disks}.all(new,"
    same = f" oldSelf.{disks}.all(old, new.name != old.name || "
    unsized = f"!{sized('new')} || !{sized('old')}"
    return (
        Rule(
            f"{pairs}{same}{unsized} || {size_of('new')} >= {size_of('old')}))",
            "disks can grow but never shrink",
            field_path=f".{disks}",
        ),
        *(
            Rule(
                f"{pairs}{same}(has(new.{field}) == has(old.{field})"
                f" && (!has(new.{field}) || new.{field} == old.{field}))))",
                f"{field} of a disk cannot change: take the disk off the list, which keeps its "
                "data, and add one with another name",
                field_path=f".{disks}",
            )
            for field in ("storageClass", "accessMode", "volumeMode")
        ),
    )
