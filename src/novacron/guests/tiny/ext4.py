"""Making a root file system as an ordinary user, without mounting it."""

from pathlib import Path

from novacron.guests.tiny.programs import run

__all__ = ["ext4"]

BLOCK = 4096
# Room for the tables of a grown file system is reserved up to what a partition table can tell.
LARGEST = 2 * 2**40
# The journal must hold one step of growing to that size; 4 MiB were too few.
JOURNAL_MIB = 8
# Also the inodes of each 128 MiB that are added later.
INODES = 2048


def ext4(tree: Path, size: int, label: str, image: Path) -> None:
    """Write a file system with these files, all of them belonging to root."""
    image.unlink(missing_ok=True)
    growth = ["-E", f"resize={LARGEST // BLOCK}", "-J", f"size={JOURNAL_MIB}"]
    layout = ["-b", str(BLOCK), "-N", str(INODES), "-m", "1", *growth]
    run(["mke2fs", "-q", "-t", "ext4", "-L", label, *layout, "-d", tree, image, f"{size // 1024}k"])
    names = ["", *(path.relative_to(tree).as_posix() for path in tree.rglob("*"))]
    commands = [f'sif "/{name}" {owner} 0' for name in names for owner in ("uid", "gid")]
    run(["debugfs", "-w", "-f", "-", image], text="\n".join(commands))
