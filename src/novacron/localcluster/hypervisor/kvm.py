"""Whether guests can run on the CPU itself, or are emulated, which is many times slower."""

import fcntl
import os
import re
import stat
from pathlib import Path

__all__ = ["DEVICE", "open_to_group", "why_emulated"]

DEVICE = Path("/dev/kvm")
CPUS = Path("/proc/cpuinfo")
GET_API_VERSION = 0xAE00
API_VERSION = 12
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
    return None if works else f"{DEVICE} does not answer as KVM does"


def open_to_group() -> int | None:
    """Return the group that may use the device, for guests that run as nobody in particular."""
    try:
        found = DEVICE.stat()
    except OSError:
        return None
    wanted = stat.S_IRGRP | stat.S_IWGRP
    return found.st_gid if found.st_gid and found.st_mode & wanted == wanted else None
