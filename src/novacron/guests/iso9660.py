"""ISO 9660 volumes of a few small files, byte for byte the same for the same files.

Written by hand because it is a page of fixed layout: one directory, told twice, in the capitals
of ISO 9660 and under its real names in Joliet. It knows nothing about what the files mean.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

__all__ = ["Volume", "iso9660"]

SECTOR = 2048
SYSTEM_AREA = 16 * SECTOR
DESCRIPTORS = 3
# Readers look further than a small volume goes, and some take its end for an error of the disk:
# busybox finds no label on less than 68 KiB. This is what other makers of volumes append.
PADDING = 150
# A day that never changes: the same files make the same volume on any day.
RECORDED = bytes((100, 1, 1, 0, 0, 0, 0))
CREATED = b"2000010100000000\0"
NEVER = b"0" * 16 + b"\0"
JOLIET = b"%/E"


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    sector: int
    size: int


@dataclass(frozen=True, slots=True)
class _Naming:
    """One of the two ways of telling the directory."""

    kind: int
    escape: bytes
    directory: int

    def encode(self, text: str) -> bytes:
        return text.encode("utf-16-be") if self.escape else text.encode("ascii")

    def identifier(self, name: str) -> bytes:
        plain = name if self.escape else name.upper().replace("-", "_") + "."
        return self.encode(f"{plain};1")

    def padded(self, text: str, length: int) -> bytes:
        encoded = self.encode(text)
        blank = self.encode(" ")
        return (encoded + blank * length)[:length]


@dataclass(frozen=True, slots=True)
class Volume:
    """A disk of this length; what follows its content is zeros."""

    content: bytes
    length: int

    def __bytes__(self) -> bytes:
        return self.content.ljust(self.length, b"\0")


def iso9660(label: str, files: Mapping[str, bytes]) -> Volume:
    """Return a volume with this label and these files; names are ASCII without directories."""
    names = sorted(files)
    head = _head(label, tuple((name, len(files[name])) for name in names))
    content = b"".join((head, *(_whole(files[name]) for name in names)))
    return Volume(content, len(content) + PADDING * SECTOR)


@lru_cache(maxsize=64)  # the files of one guest are hardly ever larger than another's
def _head(label: str, sizes: tuple[tuple[str, int], ...]) -> bytes:
    """Return all that comes before the files."""
    tables = SYSTEM_AREA // SECTOR + DESCRIPTORS
    primary, joliet = _Naming(1, b"", tables + 4), _Naming(2, JOLIET, tables + 5)
    entries = _place(sizes, tables + 6)
    sectors = tables + 6 + sum(_sectors(entry.size) for entry in entries) + PADDING
    parts = [bytes(SYSTEM_AREA)]
    for table, naming in ((tables, primary), (tables + 2, joliet)):
        parts.append(_descriptor(label, naming, sectors, table))
    parts.append(_whole(b"\xffCD001\x01"))
    for naming in (primary, joliet):
        parts += [_whole(_path_table(naming.directory, order)) for order in "<>"]
    parts += [_directory(entries, naming) for naming in (primary, joliet)]
    return b"".join(parts)


def _place(sizes: Iterable[tuple[str, int]], first: int) -> list[_Entry]:
    entries = []
    for name, size in sizes:
        entries.append(_Entry(name, first, size))
        first += _sectors(size)
    return entries


def _sectors(size: int) -> int:
    return -(-size // SECTOR)


def _whole(content: bytes) -> bytes:
    return content.ljust(_sectors(len(content)) * SECTOR, b"\0")


def _both(number: int, form: str) -> bytes:
    return struct.pack(f"<{form}", number) + struct.pack(f">{form}", number)


def _record(identifier: bytes, sector: int, size: int, *, directory: bool = False) -> bytes:
    content = (
        b"\0"
        + _both(sector, "I")
        + _both(size, "I")
        + RECORDED
        + bytes((2 if directory else 0, 0, 0))
        + _both(1, "H")
        + bytes((len(identifier),))
        + identifier
    )
    content += b"\0" * ((len(content) + 1) % 2)
    return bytes((len(content) + 1,)) + content


def _directory(entries: Sequence[_Entry], naming: _Naming) -> bytes:
    here, parent = (
        _record(name, naming.directory, SECTOR, directory=True) for name in (b"\0", b"\1")
    )
    records = sorted((naming.identifier(entry.name), entry) for entry in entries)
    listed = [_record(name, entry.sector, entry.size) for name, entry in records]
    content = _whole(b"".join((here, parent, *listed)))
    assert len(content) == SECTOR, "a directory of one sector holds some twenty files"
    return content


def _path_table(directory: int, order: str) -> bytes:
    return struct.pack(f"{order}BBIHBB", 1, 0, directory, 1, 0, 0)


def _descriptor(label: str, naming: _Naming, sectors: int, table: int) -> bytes:
    content = (
        bytes((naming.kind,))
        + b"CD001\x01\0"
        + naming.padded("", 32)
        + naming.padded(label, 32)
        + bytes(8)
        + _both(sectors, "I")
        + naming.escape.ljust(32, b"\0")
        + _both(1, "H") * 2
        + _both(SECTOR, "H")
        + _both(len(_path_table(0, "<")), "I")
        + struct.pack("<II", table, 0)
        + struct.pack(">II", table + 1, 0)
        + _record(b"\0", naming.directory, SECTOR, directory=True)
        + naming.padded("", 128) * 4
        + naming.padded("", 37) * 3
        + CREATED * 2
        + NEVER * 2
        + b"\x01"
    )
    return _whole(content)
