"""Tells from its first bytes what an image is, and refuses what must not reach a host.

A disk image may name other files of the host, its backing, data, parent or extent file: whoever
could have such an image imported could read any disk there. So only images that stand alone are
taken.
"""

import re
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
ENCRYPTION_AT = 32
BOOT_SIGNATURE = b"\x55\xaa"
VHDX = b"vhdxfile"
VMDK = b"KDMV"
# Magic, version, flags, capacity in sectors, grain size, where the description is and how long.
VMDK_HEADER = struct.Struct("<4sIIQQQQ")
# Kinds of VMDK that are one file; all others name files beside them.
VMDK_ALONE = (b"monolithicSparse", b"streamOptimized")
VMDK_KIND = re.compile(rb'createType\s*=\s*"([^"]*)"')
TAR = b"ustar"
TAR_AT = 257
TAR_NAME = 100
FOREIGN = {
    b"\x1f\x8b": "compressed with gzip",
    b"\xfd7zXZ": "compressed with xz",
    b"(\xb5/\xfd": "compressed with zstd",
    b"BZh": "compressed with bzip2",
    b"PK\x03\x04": "a zip archive",
    b"# Disk DescriptorFile": "a VMDK description; give the whole disk in one file",
    b"COWD": "a VMDK disk of ESX; export it as one sparse file",
    b"conectix": "a VHD disk; convert it to VHDX",
    b"<<< ": "a VDI disk",
}


@dataclass(frozen=True, slots=True)
class Inspected:
    """What an image is; a raw one is as large as its bytes are many."""

    format: str
    virtual_bytes: int | None

    @property
    def is_foreign(self) -> bool:
        """Say whether it has to be converted before a guest can have it."""
        return self.format not in ("qcow2", "raw")


def inspect(head: bytes, source: str) -> Inspected:
    """Return what an image is that begins like this; raise Rejected when it cannot be used."""
    if head.startswith(QCOW2) and len(head) >= HEADER.size:
        return _qcow2(head, source)
    if head.startswith(VMDK) and len(head) >= VMDK_HEADER.size:
        return _vmdk(head, source)
    if head.startswith(VHDX):
        return Inspected("vhdx", None)
    if head[TAR_AT : TAR_AT + len(TAR)] == TAR:
        return _archive(head, source)
    for magic, what in FOREIGN.items():
        if head.startswith(magic):
            raise _refusal(source, f"is {what}; use qcow2, raw, vmdk, vhdx or ova")
    # A raw disk has no mark of its own, but one that boots has a boot sector.
    if head[SECTOR - 2 : SECTOR] != BOOT_SIGNATURE:
        raise _refusal(
            source,
            "is no disk image: neither qcow2, vmdk, vhdx or ova nor a raw disk with a boot sector",
        )
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
    if len(head) >= ENCRYPTION_AT + 4 and head[ENCRYPTION_AT : ENCRYPTION_AT + 4] != bytes(4):
        raise _refusal(source, "is encrypted, which nobody here has the key for")
    return Inspected("qcow2", virtual_bytes)


def _vmdk(head: bytes, source: str) -> Inspected:
    _, _, _, sectors, _, described_at, described = VMDK_HEADER.unpack_from(head)
    end = (described_at + described) * SECTOR
    kind = VMDK_KIND.search(head[described_at * SECTOR : end]) if end <= len(head) else None
    # QEMU takes a disk without sectors for a description of files, and a hint for a parent.
    if not sectors or not described_at or kind is None or kind[1] not in VMDK_ALONE:
        raise _refusal(
            source,
            "is a VMDK that refers to other files; export it as one sparse or stream-optimised "
            "file",
            reason="ImageNotAlone",
        )
    if b"parentFileNameHint" in head:
        raise _refusal(source, "is a VMDK that has a parent", reason="ImageNotAlone")
    return Inspected("vmdk", sectors * SECTOR)


def _archive(head: bytes, source: str) -> Inspected:
    name = head[:TAR_NAME].partition(b"\0")[0].lower()
    if not name.endswith(b".ovf"):
        raise _refusal(source, "is a tar archive, but no ova, which begins with its .ovf")
    return Inspected("ova", None)


def _incompatible(head: bytes) -> int:
    if len(head) < INCOMPATIBLE_AT + INCOMPATIBLE.size:
        return 0
    features: int = INCOMPATIBLE.unpack_from(head, INCOMPATIBLE_AT)[0]
    return features


def _refusal(source: str, why: str, *, reason: str = "NotAnImage") -> Rejected:
    return Rejected(f"image {source} {why}", reason=reason)
