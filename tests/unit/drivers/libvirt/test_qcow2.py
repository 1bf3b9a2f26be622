"""What a qcow2 file says of the snapshots within it, beside what QEMU's own tool did to it."""

import struct
import subprocess
from functools import partial
from pathlib import Path

import pytest

from novacron.drivers.libvirt.qcow2 import read_snapshots

MIB = 1024 * 1024
CLUSTER = 65536


def read(path: Path, start: int, length: int) -> bytes:
    """Return bytes of a file."""
    with path.open("rb") as file:
        file.seek(start)
        return file.read(length)


def run(*command: str | Path) -> None:
    """Run a tool of QEMU."""
    subprocess.run([str(each) for each in command], check=True, capture_output=True)


@pytest.mark.parametrize("options", ["", "extended_l2=on,cluster_size=128k", "compat=0.10"])
def test_a_snapshot_holds_what_was_written_before_it(tmp_path: Path, options: str) -> None:
    """Not what was written after, and not what another one holds alone."""
    disk = tmp_path / "disk.qcow2"
    flags = ["-o", options] if options else []
    run("qemu-img", "create", "-f", "qcow2", *flags, disk, "2G")
    run("qemu-io", "-c", "write 0 5M", "-c", "write 1G 1M", disk)
    run("qemu-img", "snapshot", "-c", "first", disk)
    run("qemu-io", "-c", "write 0 2M", "-c", "write 100M 3M", disk)
    run("qemu-img", "snapshot", "-c", "a second with a longer name", disk)
    run("qemu-io", "-c", "write 200M 7M", disk)
    tables = read_snapshots(partial(read, disk))
    assert tables is not None
    held = {each.name: tables.held_bytes(each) for each in tables.snapshots}
    assert held == {"first": 6 * MIB, "a second with a longer name": 9 * MIB}
    assert tables.find("third") is None


def test_compressed_data_counts_as_little_as_it_is(tmp_path: Path) -> None:
    """Images that are brought are often packed."""
    raw, disk = tmp_path / "raw", tmp_path / "disk.qcow2"
    raw.write_bytes(b"novacron" * (MIB // 8))
    run("qemu-img", "convert", "-c", "-O", "qcow2", raw, disk)
    run("qemu-img", "snapshot", "-c", "one", disk)
    tables = read_snapshots(partial(read, disk))
    assert tables is not None
    (one,) = tables.snapshots
    assert 0 < tables.held_bytes(one) <= MIB // CLUSTER * 1024


def test_what_is_no_qcow2_has_no_tables(tmp_path: Path) -> None:
    """A raw disk, or an empty file."""
    file = tmp_path / "raw"
    file.write_bytes(b"")
    assert read_snapshots(partial(read, file)) is None
    file.write_bytes(b"\0" * MIB)
    assert read_snapshots(partial(read, file)) is None


def told(disk: Path, count: int) -> int:
    """Have a header say how many snapshots there are; return how often its file is read then."""
    header = bytearray(disk.read_bytes())
    header[60:64] = count.to_bytes(4, "big")
    disk.write_bytes(header)
    reads: list[int] = []

    def counted(start: int, length: int) -> bytes:
        reads.append(start)
        return read(disk, start, length)

    assert read_snapshots(counted) is None
    return len(reads)


def test_a_table_that_no_file_of_qemu_has_is_not_read(tmp_path: Path) -> None:
    """Each entry of it costs a question to the host, which has other work to do."""
    disk = tmp_path / "disk.qcow2"
    run("qemu-img", "create", "-f", "qcow2", disk, "1M")
    assert told(disk, 65537) == 1


def test_a_table_that_its_file_ends_before_is_none(tmp_path: Path) -> None:
    """Nobody can go back to what is not there."""
    disk = tmp_path / "disk.qcow2"
    run("qemu-img", "create", "-f", "qcow2", disk, "1M")
    run("qemu-img", "snapshot", "-c", "one", disk)
    (start,) = struct.unpack(">Q", read(disk, 64, 8))
    disk.write_bytes(disk.read_bytes()[: start + 8])
    assert told(disk, 3) == 2
