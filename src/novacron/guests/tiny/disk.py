"""Making a bootable disk as an ordinary user, without mounting anything.

The disk has a table of two partitions: a small FAT one with boot loader, kernel and initial RAM
disk, which nobody writes to again, and behind it the root, which can grow.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from novacron.guests.tiny.ext4 import ext4
from novacron.guests.tiny.programs import run
from novacron.guests.tiny.tree import System

__all__ = ["Disk"]

MIB = 2**20
SECTOR = 512
SIZE = 64 * MIB
BOOT_START = 1 * MIB
ROOT_LABEL = "novacron-tiny"
DISK_IDENTITY = b"tiny"
FAT16, LINUX, ACTIVE = 0x0E, 0x83, 0x80
COMMAND_LINE = (
    f"root=LABEL={ROOT_LABEL} quiet console=tty0 console=ttyS0,115200 panic=1 "
    # A guest for tests guards nothing, and without its guards it is ready sooner.
    "mitigations=off nokaslr lsm="
)
SYSLINUX = f"""DEFAULT tiny
LABEL tiny
  LINUX vmlinuz
  INITRD initrd
  APPEND {COMMAND_LINE}
"""


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk in the making: the parts lie in a scratch directory."""

    system: System
    scratch: Path

    def write(self, root: Path, files: Mapping[str, bytes], image: Path) -> None:
        """Write the disk as a compressed qcow2 image."""
        boot = self._boot({**files, "syslinux.cfg": SYSLINUX.encode()})
        root_start = BOOT_START + boot.stat().st_size
        raw = self.scratch / "disk.raw"
        with raw.open("wb") as disk:
            disk.truncate(SIZE)
            disk.write(self._table(root_start))
            disk.seek(BOOT_START)
            disk.write(boot.read_bytes())
            disk.seek(root_start)
            disk.write(self._root(root, SIZE - root_start))
        run(["qemu-img", "convert", "-f", "raw", "-O", "qcow2", "-c", raw, image])

    def _boot(self, files: Mapping[str, bytes]) -> Path:
        """Make the boot partition, just large enough for its files and the boot loader."""
        image = self.scratch / "boot.fat"
        tools = self.system.program("mtools").parent
        sectors = (sum(map(len, files.values())) // MIB + 2) * MIB // SECTOR
        form = ["-T", str(sectors), "-c", "4", "-N", "0"]
        run(["mformat", "-C", "-i", image, *form, "::"], first=tools)
        for name, content in files.items():
            source = self.scratch / name
            source.write_bytes(content)
            run(["mcopy", "-i", image, source, f"::{name}"], first=tools)
        run([self.system.program("syslinux"), "--install", image], first=tools)
        return image

    def _root(self, tree: Path, size: int) -> bytes:
        image = self.scratch / "root.ext4"
        ext4(tree, size, ROOT_LABEL, image)
        return image.read_bytes()

    def _table(self, root_start: int) -> bytes:
        """Return the first sector: what the BIOS runs, and where the partitions lie."""
        code = self.system.find("lib/SYSLINUX/mbr.bin").read_bytes()
        boot = _partition(ACTIVE, FAT16, BOOT_START, root_start)
        root = _partition(0, LINUX, root_start, SIZE)
        table = (boot + root).ljust(64, b"\0")
        return code.ljust(440, b"\0") + DISK_IDENTITY + bytes(2) + table + b"\x55\xaa"


def _partition(flag: int, kind: int, start: int, end: int) -> bytes:
    # Nobody counts cylinders any more; these say "too large to count".
    beyond = b"\xfe\xff\xff"
    sectors = struct.pack("<II", start // SECTOR, (end - start) // SECTOR)
    return bytes((flag,)) + beyond + bytes((kind,)) + beyond + sectors
