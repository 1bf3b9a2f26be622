"""The calls to the kernel that Python 3.11 has no names for: namespaces, mounts, prctl.

Standard library only: the keepers of containers import it.
"""

import ctypes
import os

__all__ = [
    "CLONE_NEWIPC",
    "CLONE_NEWNET",
    "CLONE_NEWNS",
    "CLONE_NEWPID",
    "CLONE_NEWUTS",
    "MNT_DETACH",
    "MS_BIND",
    "MS_NODEV",
    "MS_NOEXEC",
    "MS_NOSUID",
    "MS_PRIVATE",
    "MS_RDONLY",
    "MS_REC",
    "MS_REMOUNT",
    "drop_capability",
    "forbid_new_privileges",
    "last_capability",
    "mount",
    "pivot_root",
    "send_on_death_of_parent",
    "setns",
    "unmount",
    "unshare",
]

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MNT_DETACH = 0x2

PR_SET_PDEATHSIG = 1
PR_CAPBSET_READ = 23
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38

_LIBC = ctypes.CDLL(None, use_errno=True)


def unshare(namespaces: int) -> None:
    """Give this thread new namespaces of these kinds."""
    _check(_LIBC.unshare(namespaces), "unshare")


def setns(handle: int, kind: int) -> None:
    """Move this thread into a namespace."""
    _check(_LIBC.setns(handle, kind), "setns")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mount a file system, or bind one place to another."""
    result = _LIBC.mount(
        source.encode(),
        target.encode(),
        kind.encode() or None,
        ctypes.c_ulong(flags),
        options.encode() or None,
    )
    _check(result, target)


def unmount(target: str, flags: int = 0) -> None:
    """Take a mount away."""
    _check(_LIBC.umount2(target.encode(), flags), target)


def pivot_root(new: str, old: str) -> None:
    """Make a mount the root of this mount namespace and put the old root below it."""
    _check(_LIBC.pivot_root(new.encode(), old.encode()), new)


def send_on_death_of_parent(number: int) -> None:
    """Have the kernel send this process a signal when its parent ends.

    A change of user takes this back, so it comes after one.
    """
    _prctl(PR_SET_PDEATHSIG, number)


def forbid_new_privileges() -> None:
    """Let no program that this process becomes gain rights by being set-user-ID."""
    _prctl(PR_SET_NO_NEW_PRIVS, 1)


def drop_capability(number: int) -> None:
    """Take a capability from whatever this process becomes."""
    _prctl(PR_CAPBSET_DROP, number)


def last_capability() -> int:
    """Return the highest capability that this kernel knows."""
    number = 0
    while _LIBC.prctl(PR_CAPBSET_READ, ctypes.c_ulong(number + 1), 0, 0, 0) >= 0:
        number += 1
    return number


def _prctl(option: int, value: int) -> None:
    _check(_LIBC.prctl(option, ctypes.c_ulong(value), 0, 0, 0), "prctl")


def _check(result: int, what: str) -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), what)
