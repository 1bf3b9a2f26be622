"""On top of what a qcow2 volume is, as its header says; and how to put it on top of another.

A file that was brought from another host names what it was on top of there. libvirt has no call
that changes this, and the header has a place of its own for it.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from novacron.drivers.libvirt.qcow2 import MAGIC, Read

__all__ = ["Header"]

START = struct.Struct(">4sIQII")
SIZE_OF_NAME = 16
LENGTH = struct.Struct(">I")
SHORT_HEADER, LENGTH_AT = 72, 100
EXTENSION = struct.Struct(">II")
BACKING_FORMAT = 0xE2792ACA
ALIGNMENT = 8
# QEMU opens no file that has more.
LONGEST_NAME = 1023
MOST_CLUSTER_BITS = 21


@dataclass(frozen=True, slots=True)
class Header:
    """The first cluster of a qcow2 volume that is on top of another."""

    content: bytes

    @classmethod
    def of(cls, read: Read) -> Self | None:
        """Return it; None where the volume is no qcow2, or on top of nothing."""
        start = read(0, START.size)
        if len(start) < START.size or not start.startswith(MAGIC):
            return None
        _, _, place, _, cluster_bits = START.unpack(start)
        if not place or cluster_bits > MOST_CLUSTER_BITS:
            return None
        return cls(read(0, 1 << cluster_bits))

    @property
    def backing(self) -> str:
        """The path of what it is on top of."""
        _, _, place, size, _ = START.unpack_from(self.content)
        return self.content[place : place + size].decode()

    def on(self, path: str, kind: str) -> bytes:
        """Return what is to be written over its beginning to put it on top of another volume."""
        _, _, place, _, _ = START.unpack_from(self.content)
        name, written = path.encode(), bytearray(self.content)
        if len(name) > LONGEST_NAME or place + len(name) > len(written):
            raise ValueError(f"the path {path} is too long for the header of a qcow2 file")
        LENGTH.pack_into(written, SIZE_OF_NAME, len(name))
        written[place : place + len(name)] = name
        for at, number, size in self._extensions():
            room = -(-size // ALIGNMENT) * ALIGNMENT
            if number == BACKING_FORMAT:
                EXTENSION.pack_into(written, at, number, len(kind))
                start = at + EXTENSION.size
                written[start : start + room] = kind.encode().ljust(room, b"\0")
        return bytes(written[: place + len(name)])

    def _extensions(self) -> Iterator[tuple[int, int, int]]:
        """Return where each extension is, which one it is and how much it says."""
        version = LENGTH.unpack_from(self.content, len(MAGIC))[0]
        at = SHORT_HEADER if version == 2 else LENGTH.unpack_from(self.content, LENGTH_AT)[0]
        while at + EXTENSION.size <= len(self.content):
            number, size = EXTENSION.unpack_from(self.content, at)
            if not number:
                return
            yield at, number, size
            at += EXTENSION.size + -(-size // ALIGNMENT) * ALIGNMENT
