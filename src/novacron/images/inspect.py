"""Tells from its first bytes what an image is, and refuses what must not reach a host.

A qcow2 file may name other files of the host, its backing or data file: whoever could have such
an image imported could read any disk there. So only images that stand alone are taken.
"""

import struct
from dataclasses import dataclass

from novacron.core.errors import Rejected

__all__ = ["HEADER_BYTES", "Inspected", "inspect"]

HEADER_BYTES = 64 * 1024
SECTOR = 512
QCOW2 = b"QFI\xfb"
# Header of version 2: magic, version, backing offset and size, cluster bits, virtual size.
HEADER = struct.Struct(">4sIQIIQ")
INCOMPATIBLE = struct.Struct(">Q")
INCOMPATIBLE_AT = 72
EXTERNAL_DATA = 1 << 2
BOOT_SIGNATURE = b"\x55\xaa"
FOREIGN = {
    b"\x1f\x8b": "compressed with gzip",
    b"\xfd7zXZ": "compressed with xz",
    b"(\xb5/\xfd": "compressed with zstd",
    b"BZh": "compressed with bzip2",
    b"PK\x03\x04": "a zip archive",
    b"KDMV": "a VMDK disk",
    b"# Disk DescriptorFile": "a VMDK description",
    b"conectix": "a VHD disk",
    b"vhdxfile": "a VHDX disk",
    b"<<< ": "a VDI disk",
}


@dataclass(frozen=True, slots=True)
class Inspected:
    """What an image is; a raw one is as large as its bytes are many."""

    format: str
    virtual_bytes: int | None


def inspect(head: bytes, source: str) -> Inspected:
    """Return what an image is that begins like this; raise Rejected when it cannot be used."""
    if head.startswith(QCOW2) and len(head) >= HEADER.size:
        return _qcow2(head, source)
    for magic, what in FOREIGN.items():
        if head.startswith(magic):
            raise _refusal(source, f"is {what}; only qcow2 and raw images can be used")
    # A raw disk has no mark of its own, but one that boots has a boot sector.
    if head[SECTOR - 2 : SECTOR] != BOOT_SIGNATURE:
        raise _refusal(source, "is no disk image: neither qcow2 nor a raw disk with a boot sector")
    return Inspected("raw", None)


def _qcow2(head: bytes, source: str) -> Inspected:
    _, version, backing_at, _, _, virtual_bytes = HEADER.unpack_from(head)
    if version not in (2, 3):
        raise _refusal(source, f"is qcow2 of version {version}, which is not known")
    if backing_at:
        raise _refusal(
            source,
            "refers to a backing file; flatten it first with qemu-img convert",
            reason="ImageNotAlone",
        )
    if version == 3 and _incompatible(head) & EXTERNAL_DATA:
        raise _refusal(
            source,
            "keeps its data in another file; flatten it first with qemu-img convert",
            reason="ImageNotAlone",
        )
    return Inspected("qcow2", virtual_bytes)


def _incompatible(head: bytes) -> int:
    if len(head) < INCOMPATIBLE_AT + INCOMPATIBLE.size:
        return 0
    features: int = INCOMPATIBLE.unpack_from(head, INCOMPATIBLE_AT)[0]
    return features


def _refusal(source: str, why: str, *, reason: str = "NotAnImage") -> Rejected:
    return Rejected(f"image {source} {why}", reason=reason)
