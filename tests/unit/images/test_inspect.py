"""What an image is, told from its first bytes."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from novacron.core.errors import Rejected
from novacron.images import inspect
from novacron.images.inspect import HEADER, VMDK_HEADER


def qcow2(version: int = 3, backing: int = 0, size: int = 2**30, incompatible: int = 0) -> bytes:
    head = HEADER.pack(b"QFI\xfb", version, backing, 0, 16, size)
    return head.ljust(72, b"\0") + struct.pack(">Q", incompatible)


def vmdk(sectors: int = 2048, kind: str = "monolithicSparse", more: str = "") -> bytes:
    text = f'# Disk DescriptorFile\ncreateType="{kind}"\n{more}\n'
    head = VMDK_HEADER.pack(b"KDMV", 1, 3, sectors, 128, 1, 20)
    return head.ljust(512, b"\0") + text.encode().ljust(20 * 512, b"\0")


def tar(name: str) -> bytes:
    return name.encode().ljust(257, b"\0") + b"ustar\x0000" + b"\0" * 2048


def test_a_qcow2_tells_its_virtual_size() -> None:
    """The disk must be at least as large."""
    found = inspect(qcow2(size=5 * 2**30), "x")
    assert (found.format, found.virtual_bytes) == ("qcow2", 5 * 2**30)


def test_foreign_disks_are_known_by_what_they_begin_with() -> None:
    """Never by their names, which anybody can choose."""
    found = inspect(vmdk(sectors=2048), "x.qcow2")
    assert (found.format, found.virtual_bytes, found.is_foreign) == ("vmdk", 2**20, True)
    assert inspect(b"vhdxfile" + b"\0" * 600, "x").format == "vhdx"
    assert inspect(tar("machine.OVF"), "x").format == "ova"
    assert not inspect(qcow2(), "x").is_foreign


def test_a_raw_disk_is_known_by_its_boot_sector() -> None:
    """It has no other mark."""
    assert inspect(b"\0" * 510 + b"\x55\xaa" + b"\0" * 512, "x").format == "raw"


@pytest.mark.parametrize(
    ("head", "reason", "words"),
    [
        (qcow2(backing=512), "ImageNotAlone", "backing file"),
        (qcow2(version=2, backing=512), "ImageNotAlone", "backing file"),
        (qcow2(incompatible=4), "ImageNotAlone", "another file"),
        (qcow2(version=9), "NotAnImage", "version 9"),
        (qcow2()[:32] + b"\0\0\0\2" + qcow2()[36:], "NotAnImage", "encrypted"),
        (b"KDMV" + b"\0" * 600, "ImageNotAlone", "VMDK that refers to other files"),
        (vmdk(sectors=0), "ImageNotAlone", "refers to other files"),
        (vmdk(kind="monolithicFlat"), "ImageNotAlone", "refers to other files"),
        (vmdk(more='parentFileNameHint="/etc/shadow"'), "ImageNotAlone", "has a parent"),
        (b"# Disk DescriptorFile\nversion=1", "NotAnImage", "VMDK description"),
        (b"conectix" + b"\0" * 600, "NotAnImage", "convert it to VHDX"),
        (tar("disk.vmdk"), "NotAnImage", "no ova"),
        (b"<!doctype html>" * 100, "NotAnImage", "no disk image"),
        (b"", "NotAnImage", "no disk image"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_reason(head: bytes, reason: str, words: str) -> None:
    """One sentence that says what it is."""
    with pytest.raises(Rejected, match=words) as refusal:
        inspect(head, "https://images.example/disk")
    assert refusal.value.reason == reason


@given(
    st.binary(max_size=2048),
    st.sampled_from([b"", b"QFI\xfb", b"QFI\xfb\0\0\0\3", b"KDMV", b"vhdxfile"]),
)
def test_any_bytes_are_either_an_image_or_refused(rest: bytes, start: bytes) -> None:
    """Images come from anybody; nothing else may ever be raised."""
    try:
        found = inspect(start + rest, "x")
    except Rejected:
        return
    assert found.format in ("qcow2", "raw", "vmdk", "vhdx", "ova")
