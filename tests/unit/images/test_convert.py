"""Images in other formats become qcow2, by the real qemu-img in its cell."""

import os
import re
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import tracemalloc
from pathlib import Path

import orjson
import pytest

from guest_images import as_ova
from novacron.core.errors import Busy, Rejected
from novacron.images import FileBytes, Limits, converted, open_image
from novacron.images.convert import CONFINE

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A raw disk: 1 MiB of noise in the midst of 16 MiB."""
    path = tmp_path_factory.mktemp("disk") / "disk.raw"
    path.write_bytes((b"\0" * 510 + b"\x55\xaa").ljust(MIB, b"\0") + os.urandom(MIB))
    os.truncate(path, 16 * MIB)
    return path


def image(disk: Path, kind: str, *options: str) -> Path:
    made = disk.with_name(f"made-{'-'.join((kind, *options)).replace('=', '-')}.{kind}")
    extra = [word for option in options for word in ("-o", option)]
    subprocess.run(["qemu-img", "convert", "-O", kind, *extra, disk, made], check=True)
    return made


def convert(path: Path, limits: Limits | None = None) -> bytes:
    with (
        open_image(FileBytes(path, path.name), None, limits or Limits()) as fetch,
        converted(fetch, path.parent, lambda: None) as ready,
    ):
        assert ready.inspected.format == "qcow2"
        return b"".join(ready.chunks())


STREAMED = "subformat=streamOptimized"


@pytest.mark.parametrize(("kind", "options"), [("vmdk", ()), ("vmdk", (STREAMED,)), ("vhdx", ())])
def test_the_disk_is_the_same_afterwards(disk: Path, kind: str, options: tuple[str, ...]) -> None:
    """Byte by byte, as the guest sees it."""
    made = disk.with_name("converted.qcow2")
    made.write_bytes(convert(image(disk, kind, *options)))
    subprocess.run(["qemu-img", "compare", made, disk], check=True, stdout=subprocess.DEVNULL)


def test_the_one_disk_of_an_ova_is_taken(disk: Path, tmp_path: Path) -> None:
    """It is read where it lies in the archive."""
    made = tmp_path / "converted.qcow2"
    made.write_bytes(convert(as_ova(tmp_path, image(disk, "vmdk", STREAMED))))
    subprocess.run(["qemu-img", "compare", made, disk], check=True, stdout=subprocess.DEVNULL)


def test_an_ova_with_two_disks_or_none_is_refused(disk: Path, tmp_path: Path) -> None:
    """Which of them would be a guess."""
    one = image(disk, "vmdk")
    two = image(disk, "vmdk", STREAMED)
    for members, count in (((), 0), ((one, two), 2)):
        with pytest.raises(Rejected, match=f"{count} vmdk disks"):
            convert(as_ova(tmp_path, *members))


def test_the_disk_in_an_ova_is_looked_at_too(tmp_path: Path) -> None:
    """An archive is no way around the rules."""
    flat = tmp_path / "disk.vmdk"
    flat.write_text('# Disk DescriptorFile\nRW 2048 FLAT "/etc/shadow" 0\n')
    with pytest.raises(Rejected, match="VMDK description"):
        convert(as_ova(tmp_path, flat))


def header(kind: bytes, size: int, name: str = "x") -> bytes:
    """Return a header that says that so much of a kind follows."""
    told = tarfile.TarInfo(name)
    told.type, told.size = kind, size
    return told.tobuf(tarfile.GNU_FORMAT)


LARGE = 16 * MIB
NESTED = header(tarfile.XGLTYPE, 0) * 3000


@pytest.mark.parametrize(
    "headers",
    [
        header(tarfile.XHDTYPE, LARGE),
        header(tarfile.XGLTYPE, LARGE),
        header(tarfile.GNUTYPE_LONGNAME, LARGE),
        header(tarfile.GNUTYPE_LONGLINK, LARGE),
        NESTED,
        header(tarfile.REGTYPE, 2 * LARGE, "disk.vmdk"),
        header(tarfile.REGTYPE, -4096, "disk.vmdk"),
        header(tarfile.GNUTYPE_SPARSE, 512, "disk.vmdk") + bytes(512),
    ],
    ids=["pax", "global", "name", "link", "nested", "longer", "negative", "sparse"],
)
def test_an_ova_cannot_have_this_process_read_without_end(tmp_path: Path, headers: bytes) -> None:
    """Whatever its headers say that they are: the operator itself reads them, not qemu-img."""
    ova = tmp_path / "sly.ova"
    ova.write_bytes(header(tarfile.REGTYPE, 0, "x.ovf") + headers)
    os.truncate(ova, max(LARGE, len(headers)) + 4096)
    tracemalloc.start()
    try:
        with pytest.raises(Rejected, match="is a damaged ova") as refusal:
            convert(ova)
        assert tracemalloc.get_traced_memory()[1] < LARGE // 2
    finally:
        tracemalloc.stop()
    assert refusal.value.reason == "NotAnImage"


def name_by_pax(name: bytes) -> bytes:
    """Return a header that gives what follows a name, as newer programs do."""
    record = b" path=" + name + b"\n"
    record = str(len(record) + 2).encode() + record
    return header(tarfile.XHDTYPE, len(record)) + record.ljust(tarfile.BLOCKSIZE, b"\0")


@pytest.mark.parametrize(
    "names",
    [
        header(tarfile.GNUTYPE_SPARSE, 512, "d\udcff.vmdk"),
        header(tarfile.REGTYPE, 512, "d\udcff.vmdk"),
        name_by_pax(b"d\xff.vmdk") + header(tarfile.REGTYPE, 512),
    ],
    ids=["sparse", "foreign", "pax"],
)
def test_an_ova_with_names_that_are_no_text_is_refused_in_words(
    tmp_path: Path, names: bytes
) -> None:
    """A message with a half of a character cannot be written into a status at all."""
    ova = tmp_path / "odd.ova"
    content = b"of some other format".ljust(3 * tarfile.BLOCKSIZE, b"\0")
    ova.write_bytes(header(tarfile.REGTYPE, 0, "x.ovf") + names + content)
    with pytest.raises(Rejected, match=re.escape("d\N{REPLACEMENT CHARACTER}.vmdk")) as refusal:
        convert(ova)
    orjson.dumps(str(refusal.value))


def test_one_that_unfolds_without_end_is_stopped(disk: Path) -> None:
    """A few kilobytes can stand for a full host."""
    limits = Limits(expansion=1, small_bytes=MIB // 2)
    packed = disk.with_name("packed.raw")
    packed.write_bytes((b"\0" * 510 + b"\x55\xaa").ljust(8 * MIB, b"x"))
    made = image(packed, "vmdk", STREAMED)
    assert made.stat().st_size < MIB // 4
    with pytest.raises(Rejected, match="unfolds to more than") as refusal:
        convert(made, limits)
    assert refusal.value.reason == "ImageTooLarge"


@pytest.mark.parametrize("kind", ["vmdk", "ova", "vhdx"])
def test_a_disk_larger_than_is_taken_is_refused_in_every_format(
    disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Before qemu-img has it where its head tells, and in what came of it where that does not."""
    made = image(disk, "vmdk", STREAMED) if kind == "ova" else image(disk, kind)
    given = as_ova(tmp_path, made) if kind == "ova" else made
    if kind != "vhdx":
        monkeypatch.setenv("PATH", str(tmp_path))  # where no qemu-img is
    with pytest.raises(Rejected, match="is of a disk of 1 GiB") as refusal:
        convert(given, Limits(disk_bytes=8 * MIB))
    assert refusal.value.reason == "ImageTooLarge"


def test_what_only_looks_like_a_disk_is_refused_with_what_qemu_says(tmp_path: Path) -> None:
    """And nothing else happens."""
    fake = tmp_path / "fake.vhdx"
    fake.write_bytes(b"vhdxfile".ljust(MIB, b"\xff"))
    with pytest.raises(Rejected, match="cannot be converted"):
        convert(fake)


def test_a_directory_that_takes_no_files_is_the_operators_trouble(disk: Path) -> None:
    """Not that of the image, which is tried again."""
    made = image(disk, "vmdk")
    with (
        open_image(FileBytes(made, "x"), None, Limits()) as fetch,
        pytest.raises(Busy) as trouble,
        converted(fetch, disk.with_name("missing"), lambda: None),
    ):
        pass
    assert trouble.value.reason == "NoScratchSpace"


def confined(*command: str, seconds: int = 60) -> "subprocess.CompletedProcess[str]":
    limits = (str(2**30), str(256 * MIB), str(seconds), str(MIB))
    cell = [sys.executable, "-I", "-S", str(CONFINE), *limits, *command]
    return subprocess.run(cell, capture_output=True, text=True, check=False, timeout=60)


def test_nothing_in_the_cell_has_a_network() -> None:
    """A listener that nobody reaches, though it is on this very machine."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        address = f"nbd:127.0.0.1:{port}"
        assert "Operation not permitted" in confined("/usr/bin/qemu-img", "info", address).stderr
        listener.settimeout(0.1)
        with pytest.raises(TimeoutError):
            listener.accept()


def test_nothing_in_the_cell_has_rights() -> None:
    """It reads what everybody may read."""
    if os.geteuid() == 0:
        assert "Permission denied" in confined("/bin/cat", "/etc/shadow").stderr
    assert confined("/usr/bin/head", "-c", "1", "/etc/passwd").returncode == 0


def test_nothing_in_the_cell_goes_on_for_ever_or_grows_without_end(tmp_path: Path) -> None:
    """The kernel ends it."""
    tmp_path.chmod(0o777)
    begun = time.monotonic()
    busy = confined("/bin/sh", "-c", "while :; do :; done", seconds=1)
    assert busy.returncode < 0
    assert time.monotonic() - begun < 30
    file = tmp_path / "large"
    file.touch()
    file.chmod(0o666)
    confined("/bin/sh", "-c", f"head -c {2 * MIB} /dev/zero > {file}")
    assert file.stat().st_size <= MIB


@pytest.mark.parametrize(("wanted", "granted"), [("64M", True), ("300M", False), ("2G", False)])
def test_nothing_in_the_cell_has_more_memory_than_it_was_given(wanted: str, granted: bool) -> None:
    """A disk could say that its tables are as large as the machine."""
    took = confined("/bin/dd", "if=/dev/zero", "of=/dev/null", f"bs={wanted}", "count=1")
    assert (took.returncode == 0, "memory exhausted" in took.stderr) == (granted, not granted)


@pytest.mark.parametrize(
    ("does", "failure", "words"),
    [
        ("dd if=/dev/zero of=/dev/null bs=300M count=1", Rejected, "memory exhausted"),
        ("cat /proc/self/oom_score_adj; false", Rejected, "cannot be converted: 1000$"),
        ("kill -KILL $$", Busy, "the kernel ended qemu-img"),
    ],
    ids=["greedy", "ready to go", "gone"],
)
def test_memory_that_a_conversion_wants_is_not_taken_from_the_operator(
    disk: Path, monkeypatch: pytest.MonkeyPatch, does: str, failure: type[Exception], words: str
) -> None:
    """They are in one pod, and it has half a gigabyte for four of them."""
    made = image(disk, "vhdx")
    # Where nobody in particular may read it.
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        program = Path(directory) / "qemu-img"
        program.write_text(f"#!/bin/sh\n{does}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", directory, prepend=os.pathsep)
        with pytest.raises(failure, match=words):
            convert(made)


def test_a_conversion_leaves_no_file_wherever_it_is_killed(disk: Path, tmp_path: Path) -> None:
    """The files have no names from the beginning."""
    seen: list[list[Path]] = []

    def look() -> None:
        seen.append(list(tmp_path.iterdir()))

    made = image(disk, "vmdk")
    with (
        open_image(FileBytes(made, "x"), None, Limits()) as fetch,
        converted(fetch, tmp_path, look),
    ):
        look()
    assert seen
    assert not any(seen)
