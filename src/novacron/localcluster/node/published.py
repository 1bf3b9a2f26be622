"""Files that appear and change all at once, as a kubelet writes them into volumes.

The files lie in a directory named by their content; ``..data`` links to it, and each file is a
link through ``..data``. A reader sees the old files or the new ones, never some of each.
"""

import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from novacron.localcluster.node.payload import File

__all__ = ["publish"]

CURRENT = "..data"
FOR_GROUP = 0o440


def publish(directory: Path, files: Mapping[str, File], group: int | None = None) -> bool:
    """Bring the directory to exactly these files; say whether anything was different."""
    name = f"..{_digest(files, group)}"
    current = directory / CURRENT
    if current.is_symlink() and str(current.readlink()) == name:
        return False
    before = str(current.readlink()) if current.is_symlink() else None
    _write(directory / name, files, group)
    _link(current, name)
    tops = {path.partition("/")[0] for path in files}
    for top in tops:
        if not (directory / top).is_symlink():
            _link(directory / top, f"{CURRENT}/{top}")
    for entry in directory.iterdir():
        if not entry.name.startswith("..") and entry.name not in tops:
            entry.unlink()
    if before:
        shutil.rmtree(directory / before, ignore_errors=True)
    return True


def _write(place: Path, files: Mapping[str, File], group: int | None) -> None:
    # A crash may have left half of it.
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    place.chmod(0o755)
    for path, file in files.items():
        target = place / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(file.mode | (FOR_GROUP if group is not None else 0))
        if group is not None:
            os.chown(target, -1, group)
    for parent in {(place / path).parent for path in files}:
        parent.chmod(0o755)


def _link(place: Path, target: str) -> None:
    new = place.with_name("..new")
    new.unlink(missing_ok=True)
    new.symlink_to(target)
    new.replace(place)


def _digest(files: Mapping[str, File], group: int | None) -> str:
    content = hashlib.sha256(str(group).encode())
    for path, file in sorted(files.items()):
        for part in (path.encode(), str(file.mode).encode(), file.content):
            content.update(len(part).to_bytes(8, "big") + part)
    return content.hexdigest()[:32]
