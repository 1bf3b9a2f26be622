"""Writing an initial RAM disk: a cpio archive whose files all belong to root."""

import gzip
import stat
from pathlib import Path

__all__ = ["initramfs"]


def initramfs(tree: Path) -> bytes:
    """Return the directory tree as the kernel takes it."""
    names = sorted(path.relative_to(tree).as_posix() for path in tree.rglob("*"))
    entries = [_entry(tree / name, name, number) for number, name in enumerate(names, 1)]
    return gzip.compress(b"".join((*entries, _header("TRAILER!!!", 0, 0, 0))), 9, mtime=0)


def _entry(path: Path, name: str, number: int) -> bytes:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        content = path.readlink().as_posix().encode()
    else:
        content = path.read_bytes() if stat.S_ISREG(mode) else b""
    return _header(name, number, mode, len(content)) + _aligned(content)


def _header(name: str, number: int, mode: int, size: int) -> bytes:
    encoded = name.encode() + b"\0"
    fields = (number, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, len(encoded), 0)
    return _aligned(b"070701" + b"".join(b"%08X" % field for field in fields) + encoded)


def _aligned(content: bytes) -> bytes:
    return content + b"\0" * (-len(content) % 4)
