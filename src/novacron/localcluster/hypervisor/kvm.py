"""Whether guests can run on the CPU itself, or are emulated, which is many times slower."""

import fcntl
import os
import re
import stat
from pathlib import Path

__all__ = ["DEVICE", "guest_group", "open_to_guests", "why_emulated"]

DEVICE = Path("/dev/kvm")
CPUS = Path("/proc/cpuinfo")
GET_API_VERSION = 0xAE00
API_VERSION = 12
GROUP = stat.S_IRGRP | stat.S_IWGRP
OTHERS = stat.S_IROTH | stat.S_IWOTH
FLAGS = re.compile(r"^flags\s*:.*\b(vmx|svm)\b", re.MULTILINE)


def why_emulated() -> str | None:
    """Return why guests are emulated here; None means that KVM works for this user."""
    if not FLAGS.search(CPUS.read_text()):
        return "this CPU offers no virtualization"
    if not DEVICE.exists():
        return f"there is no {DEVICE}; load the kernel's module kvm_intel or kvm_amd"
    try:
        handle = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        return f"this user may not use {DEVICE} ({error.strerror}); add it to the group kvm"
    try:
        works = fcntl.ioctl(handle, GET_API_VERSION, 0) == API_VERSION
    except OSError:
        works = False
    finally:
        os.close(handle)
    if not works:
        return f"{DEVICE} does not answer as KVM does"
    if os.geteuid() == 0 and not open_to_guests():
        return f"{DEVICE} is root's alone, and guests are not root; give it to the group kvm"
    return None


def open_to_guests() -> bool:
    """Say whether guests that root starts may use the device: they run as nobody in particular."""
    return DEVICE.exists() and (_has(DEVICE, OTHERS) or guest_group() is not None)


def guest_group() -> int | None:
    """Return the group that may use the device, unless it is root's own."""
    if not DEVICE.exists() or not _has(DEVICE, GROUP):
        return None
    return DEVICE.stat().st_gid or None


def _has(path: Path, mode: int) -> bool:
    return path.stat().st_mode & mode == mode
