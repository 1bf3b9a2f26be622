"""The two directory trees of the guest: its root, and the initial RAM disk that finds it.

Programs come from unpacked packages, scripts from the files beside this module.
"""

import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from novacron.guests.errors import ImageFailed
from novacron.guests.tiny.modules import FOR_DISKS, FOR_GUEST, install_modules
from novacron.guests.tiny.programs import run

__all__ = ["FILES", "System"]

FILES = Path(__file__).parent / "files"
LIBRARIES = "lib/x86_64-linux-gnu"
LOADER = "ld-linux-x86-64.so.2"
PROGRAMS = ("qemu-ga", "fy-tool", "resize2fs", "partx", "bash")
DIRECTORIES = (
    *("dev", "proc", "sys", "run", "tmp", "mnt", "root", "home", "opt", "srv", "usr/local/bin"),
    *("var/lib/tiny", "var/log", "var/tmp"),
)
LINKS = {
    "sbin": "bin",
    "lib64": LIBRARIES,
    "usr/bin": "../bin",
    "usr/sbin": "../bin",
    "usr/lib": "../lib",
    "var/run": "../run",
    "etc/resolv.conf": "../run/resolv.conf",
    "etc/mtab": "../proc/self/mounts",
}
INITRAMFS_APPLETS = ("cat", "findfs", "modprobe", "mount", "sh", "sleep", "switch_root", "umount")


@dataclass(frozen=True, slots=True)
class System:
    """Packages unpacked into one directory, from which guests take what they need."""

    directory: Path

    @property
    def busybox(self) -> Path:
        """Return the program that is most of the guest's; being static, it runs here as well."""
        return self.program("busybox")

    @property
    def modules(self) -> Path:
        """Return the modules of the one kernel there is; the directory is named by its version."""
        (directory,) = self.find("lib/modules").iterdir()
        return directory

    def program(self, name: str) -> Path:
        """Return where a program lies."""
        return self.find(*(f"{place}/{name}" for place in ("bin", "sbin")))

    def find(self, *names: str) -> Path:
        """Return the first that there is, in the root or in /usr: releases differ in that."""
        for name in names:
            for path in (self.directory / name, self.directory / "usr" / name):
                if path.exists():
                    return path
        raise ImageFailed(f"the packages hold no {names[0]}; take those of Debian 12 or 13")

    def root(self, tree: Path) -> None:
        """Make the guest's root."""
        for name in DIRECTORIES:
            (tree / name).mkdir(parents=True)
        self._busybox(tree, run([self.busybox, "--list"]).split())
        (tree / LIBRARIES).mkdir(parents=True)
        for name in PROGRAMS:
            self._install(name, tree)
        install_modules(self.modules, FOR_GUEST, self.busybox, tree)
        _scripts(FILES / "root", tree)
        for name, target in LINKS.items():
            (tree / name).symlink_to(target)

    def initramfs(self, tree: Path) -> None:
        """Make what finds and mounts the root."""
        for name in ("dev", "proc", "sys", "root"):
            (tree / name).mkdir(parents=True)
        self._busybox(tree, INITRAMFS_APPLETS)
        # The kernel calls this one by its path.
        (tree / "sbin").symlink_to("bin")
        install_modules(self.modules, FOR_DISKS, self.busybox, tree)
        _scripts(FILES / "initramfs", tree)

    def _busybox(self, tree: Path, applets: Iterable[str]) -> None:
        (tree / "bin").mkdir()
        shutil.copy(self.busybox, tree / "bin/busybox")
        for applet in applets:
            if applet != "busybox":
                (tree / "bin" / applet).symlink_to("busybox")

    def _install(self, name: str, tree: Path) -> None:
        """Copy a program and the shared libraries that it loads."""
        program = self.program(name)
        shutil.copy(program, tree / "bin" / name)
        places = ":".join(str(self.directory / place) for place in (LIBRARIES, f"usr/{LIBRARIES}"))
        loader = self.find(f"lib64/{LOADER}")
        told = run([loader, "--inhibit-cache", "--library-path", places, "--list", program])
        for path in re.findall(r"=> (\S+)", told):
            if not Path(path).is_relative_to(self.directory):
                raise ImageFailed(f"{name} needs {Path(path).name}, which the packages do not hold")
            shutil.copy(path, tree / LIBRARIES / Path(path).name)


def _scripts(source: Path, tree: Path) -> None:
    """Copy our files; those that begin like a program can be run."""
    for path in source.rglob("*"):
        if path.is_file():
            target = tree / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
            target.chmod(0o755 if path.read_bytes().startswith(b"#!") else 0o644)
