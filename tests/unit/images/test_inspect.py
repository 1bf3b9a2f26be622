"""What an image is, told from its first bytes."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from novacron.core.errors import Rejected
from novacron.images import inspect
from novacron.images.inspect import HEADER


def qcow2(version: int = 3, backing: int = 0, size: int = 2**30, incompatible: int = 0) -> bytes:
    head = HEADER.pack(b"QFI\xfb", version, backing, 0, 16, size)
    return head.ljust(72, b"\0") + struct.pack(">Q", incompatible)


def test_a_qcow2_tells_its_virtual_size() -> None:
    """The disk must be at least as large."""
    found = inspect(qcow2(size=5 * 2**30), "x")
    assert (found.format, found.virtual_bytes) == ("qcow2", 5 * 2**30)


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
        (b"KDMV" + b"\0" * 600, "NotAnImage", "VMDK"),
        (b"<!doctype html>" * 100, "NotAnImage", "no disk image"),
        (b"", "NotAnImage", "no disk image"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_reason(head: bytes, reason: str, words: str) -> None:
    """One sentence that says what it is."""
    with pytest.raises(Rejected, match=words) as refusal:
        inspect(head, "https://images.example/disk")
    assert refusal.value.reason == reason


@given(st.binary(max_size=2048), st.sampled_from([b"", b"QFI\xfb", b"QFI\xfb\0\0\0\3"]))
def test_any_bytes_are_either_an_image_or_refused(rest: bytes, start: bytes) -> None:
    """Images come from anybody; nothing else may ever be raised."""
    try:
        found = inspect(start + rest, "x")
    except Rejected:
        return
    assert found.format in ("qcow2", "raw")
