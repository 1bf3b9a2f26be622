"""What a qcow2 volume says of the snapshots within it, read from its own tables.

libvirt tells neither how much a snapshot within a disk holds, nor of one that nobody recorded. The
tables of a snapshot never change while it is there, so a running guest does not disturb.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

__all__ = ["MAGIC", "Read", "Tables", "Within", "read_snapshots"]

# Returns bytes of the volume, from where and how many.
Read = Callable[[int, int], bytes]

MAGIC = b"QFI\xfb"
HEADER = struct.Struct(">4sIQIIQIIQQIIQQ")
ENTRY = struct.Struct(">QIHHIIQII")
ALIGNMENT = 8
OFFSET = 0x00FFFFFFFFFFFE00
COMPRESSED = 1 << 62
SECTOR = 512
EXTENDED_TABLES = 1 << 4
# QEMU opens no file that says it has more.
MOST_SNAPSHOTS = 65536


@dataclass(frozen=True, slots=True)
class Within:
    """A snapshot within a volume, and where its tables are; QEMU numbers them by ``id``."""

    id: str
    name: str
    table_offset: int
    table_size: int


@dataclass(frozen=True, slots=True)
class Tables:
    """The snapshots within one volume."""

    read: Read
    cluster_bits: int
    extended: bool
    snapshots: tuple[Within, ...]

    def find(self, name: str) -> Within | None:
        """Return the snapshot of a name."""
        return next((each for each in self.snapshots if each.name == name), None)

    def held_bytes(self, snapshot: Within) -> int:
        """Return how much a snapshot holds: all clusters it refers to in this volume."""
        if not snapshot.table_size:
            return 0
        cluster = 1 << self.cluster_bits
        outer = _numbers(self.read(snapshot.table_offset, 8 * snapshot.table_size))
        total = 0
        for entry in outer:
            if offset := entry & OFFSET:
                inner = _numbers(self.read(offset, cluster))
                step = 2 if self.extended else 1
                total += sum(self._cluster_bytes(each) for each in islice(inner, 0, None, step))
        return total

    def _cluster_bytes(self, entry: int) -> int:
        if entry & COMPRESSED:
            # The rest of the entry tells in how many sectors the packed cluster is.
            shift = 62 - (self.cluster_bits - 8)
            return (((entry & (COMPRESSED - 1)) >> shift) + 1) * SECTOR
        return 1 << self.cluster_bits if entry & OFFSET else 0


def read_snapshots(read: Read) -> Tables | None:
    """Return the snapshots within a volume; None when it is no qcow2, or not a whole one."""
    header = read(0, HEADER.size)
    if len(header) < HEADER.size or not header.startswith(MAGIC):
        return None
    fields = HEADER.unpack(header)
    cluster_bits, count, start, features = fields[4], fields[11], fields[12], fields[13]
    version = fields[1]
    extended = version > 2 and bool(features & EXTENDED_TABLES)
    if count > MOST_SNAPSHOTS:
        return None
    try:
        found = tuple(_entries(read, start, count))
    except struct.error:  # it ends before its table does
        return None
    return Tables(read, cluster_bits, extended, found)


def _entries(read: Read, position: int, count: int) -> Iterator[Within]:
    for _ in range(count):
        entry = ENTRY.unpack(read(position, ENTRY.size))
        table_offset, table_size, id_size, name_size, *_, extra_size = entry
        names = position + ENTRY.size + extra_size
        called = read(names, id_size + name_size)
        number, name = (
            part.decode(errors="replace") for part in (called[:id_size], called[id_size:])
        )
        yield Within(number, name, table_offset, table_size)
        position = -(-(names + id_size + name_size) // ALIGNMENT) * ALIGNMENT


def _numbers(data: bytes) -> Iterator[int]:
    return (number for (number,) in struct.iter_unpack(">Q", data[: len(data) // 8 * 8]))
