"""What a qcow2 file is on top of, beside what QEMU's own tools say of it."""

import json
import subprocess
from functools import partial
from pathlib import Path

import pytest

from novacron.drivers.libvirt.qcow2_header import Header


def run(*command: str | Path) -> str:
    """Run a tool of QEMU."""
    done = subprocess.run([str(each) for each in command], check=True, capture_output=True)
    return done.stdout.decode()


def read(path: Path, start: int, length: int) -> bytes:
    """Return bytes of a file."""
    with path.open("rb") as file:
        file.seek(start)
        return file.read(length)


def written_over(disk: Path, content: bytes) -> None:
    """Have a file begin so."""
    with disk.open("r+b") as file:
        file.write(content)


@pytest.mark.parametrize("options", ["compat=1.1", "compat=0.10", "cluster_size=512"])
@pytest.mark.parametrize("other", ["a", "a-name-that-is-very-much-longer-than-the-one-it-had"])
def test_a_disk_is_put_on_top_of_another_file(tmp_path: Path, options: str, other: str) -> None:
    """QEMU reads the same of it, from a file of another name and format, and finds no fault."""
    base, disk, there = tmp_path / "base.raw", tmp_path / "disk.qcow2", tmp_path / other
    base.write_bytes(b"base" * 262144)
    run("qemu-img", "create", "-f", "qcow2", "-o", options, "-F", "raw", "-b", base, disk, "2M")
    run("qemu-io", "-c", "write -P 7 64k 4k", disk)
    run("qemu-img", "snapshot", "-c", "one", disk)
    run("qemu-img", "convert", "-O", "raw", disk, tmp_path / "before")
    run("qemu-img", "convert", "-O", "qcow2", base, there)
    base.unlink()
    header = Header.of(partial(read, disk))
    assert header is not None
    assert header.backing == str(base)
    for _ in range(2):  # as somebody does who follows one who died
        written_over(disk, header.on(str(there), "qcow2"))
        header = Header.of(partial(read, disk))
        assert header is not None
        assert header.backing == str(there)
    told = json.loads(run("qemu-img", "info", "--output=json", disk))
    assert (told["backing-filename"], told["backing-filename-format"]) == (str(there), "qcow2")
    assert [each["name"] for each in told["snapshots"]] == ["one"]
    run("qemu-img", "check", disk)
    run("qemu-img", "convert", "-O", "raw", disk, tmp_path / "after")
    assert (tmp_path / "after").read_bytes() == (tmp_path / "before").read_bytes()


def test_what_is_on_top_of_nothing_has_no_such_header(tmp_path: Path) -> None:
    """Nor has what is no qcow2, or has nothing in it."""
    disk, raw, empty = tmp_path / "disk", tmp_path / "raw", tmp_path / "empty"
    run("qemu-img", "create", "-f", "qcow2", disk, "1M")
    raw.write_bytes(b"\x55" * 4096)
    empty.touch()
    assert [Header.of(partial(read, each)) for each in (disk, raw, empty)] == [None] * 3


def test_a_path_for_which_there_is_no_room_is_refused(tmp_path: Path) -> None:
    """What follows it in the file would be written over."""
    disk = tmp_path / "disk"
    run("qemu-img", "create", "-f", "qcow2", disk, "1M")
    run("qemu-img", "create", "-f", "qcow2", "-F", "qcow2", "-b", disk, tmp_path / "top", "1M")
    header = Header.of(partial(read, tmp_path / "top"))
    assert header is not None
    with pytest.raises(ValueError, match="too long"):
        header.on("/" * 1024, "qcow2")
