"""The root file system of a container: the machine's programs, and else a place of its own.

There is no image. The directories that hold programs are seen through overlays, so whatever
the container writes there is its own; everything else (homes, data, the cluster's state) is
not there at all. All of it is mounts of the container's own namespace and goes with it.
Standard library only.
"""

import os
from pathlib import Path

from novacron.localcluster.node.kernel import (
    MNT_DETACH,
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    mount,
    pivot_root,
    unmount,
)
from novacron.localcluster.node.order import Mount, Order, Root, User

__all__ = ["PROGRAM_DIRECTORIES", "enter_root"]

# Of what a system keeps at the top, what programs need to run.
PROGRAM_DIRECTORIES = (
    "bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc", "opt", "nix", "gnu",
)  # fmt: skip
OPEN_DIRECTORIES = ("tmp", "var/tmp")
EMPTY_DIRECTORIES = (
    "home",
    "mnt",
    "root",
    "run",
    "srv",
    "var/lib",
    "var/log",
    "var/run",
    "proc",
    "sys",
    "dev",
)
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
DEVICE_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
}
# Settings of the whole machine, which root in a container must not change either.
FROZEN = ("/proc/sys", "/proc/sysrq-trigger")
MACHINE = "/.machine"


def enter_root(order: Order) -> None:
    """Make this process's mount namespace private, build the root and move into it."""
    base = Path(order.directory, "root")
    base.mkdir(exist_ok=True)
    mount("none", "/", flags=MS_REC | MS_PRIVATE)
    mount("tmpfs", str(base), "tmpfs", MS_NODEV, "mode=755")
    os.chdir(base)
    Path("root").mkdir()
    # A root must be a mount of its own; what lies beside it is out of sight then.
    mount("root", "root", flags=MS_BIND)
    overlays = _build(order.root, order.user)
    pivot_root("root", f"root{MACHINE}")
    os.chdir("/")
    _system()
    for each in order.mounts:
        _bind(each)
    # After the volumes: one of them may lie over the place where our programs are.
    for path in order.root.programs:
        _bind(Mount(path, path, read_only=True))
    # As container runtimes do: a working directory that does not exist is made.
    Path(order.working_directory).mkdir(parents=True, exist_ok=True)
    unmount(MACHINE, MNT_DETACH)
    Path(MACHINE).rmdir()
    if order.root.read_only:
        for place in ("/", *overlays):
            _freeze(place)


def _build(root: Root, user: User) -> list[str]:
    """Make the directories in ``root``; return which of them are overlays."""
    top = Path("root")
    for name in (*EMPTY_DIRECTORIES, MACHINE.strip("/")):
        (top / name).mkdir(parents=True, exist_ok=True)
    for name in OPEN_DIRECTORIES:
        (top / name).mkdir(parents=True, exist_ok=True)
        (top / name).chmod(0o1777)
    for name, text in root.files.items():
        # Below a program directory a file is put over the machine's own of that name.
        place = Path("upper" if name.split("/")[0] in PROGRAM_DIRECTORIES else top, name)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    overlays = [f"/{name}" for name in PROGRAM_DIRECTORIES if _program_directory(top, name)]
    for name, target in root.links.items():
        (top / name).symlink_to(target)
    for name in root.owned:
        (top / name).mkdir(parents=True, exist_ok=True)
        os.chown(top / name, user.uid, user.gid)
    return overlays


def _program_directory(top: Path, name: str) -> bool:
    original = Path("/", name)
    if original.is_symlink():
        (top / name).symlink_to(original.readlink())
        return False
    if not original.is_dir():
        return False
    for place in (top / name, Path("upper", name), Path("work", name)):
        place.mkdir(parents=True, exist_ok=True)
    # Relative, because a comma or a colon in our own path would be read as an option's end.
    options = f"lowerdir=/{name},upperdir=upper/{name},workdir=work/{name}"
    mount("overlay", str(top / name), "overlay", MS_NODEV, options)
    return True


def _system() -> None:
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY)
    for place in filter(os.path.exists, FROZEN):
        mount(place, place, flags=MS_BIND)
        _freeze(place)
    for name in DEVICES:
        Path("/dev", name).touch()
        mount(f"{MACHINE}/dev/{name}", f"/dev/{name}", flags=MS_BIND)
    for name, target in DEVICE_LINKS.items():
        Path("/dev", name).symlink_to(target)
    Path("/dev/shm").mkdir()  # noqa: S108 - this one is the container's own
    mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")  # noqa: S108


def _bind(wanted: Mount) -> None:
    source, target = MACHINE + wanted.source, os.path.normpath(f"/{wanted.target.lstrip('/')}")
    if Path(source).is_dir():
        Path(target).mkdir(parents=True, exist_ok=True)
    else:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        if not Path(target).exists():
            Path(target).touch()
    mount(source, target, flags=MS_BIND | MS_REC)
    if wanted.read_only:
        _freeze(target)


def _freeze(place: str) -> None:
    mount("none", place, flags=MS_REMOUNT | MS_BIND | MS_RDONLY)
