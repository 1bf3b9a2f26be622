"""Whether this process may do what running pods takes, found out by doing it.

Asking for the user's id would not be honest: a root without its powers cannot, and somebody
else with them can.
"""

import os
import tempfile

from novacron.localcluster.node.kernel import (
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUTS,
    MS_PRIVATE,
    MS_REC,
    mount,
    unshare,
)
from novacron.localcluster.node.netlink import add_bridge, add_veth

__all__ = ["inability"]

NEEDED = CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC
REMEDY = "run `novacron up` as root to have pods run"


def inability() -> str | None:
    """Return why pods cannot run here, in one sentence, or None when they can."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writing, _try().encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        said = answer.read()
    os.waitpid(pid, 0)
    return said or None


def _try() -> str:
    try:
        unshare(NEEDED)
    except OSError as error:
        return f"this user may not make namespaces ({error.strerror}); {REMEDY}"
    try:
        mount("none", "/", flags=MS_REC | MS_PRIVATE)
        base = tempfile.gettempdir()
        mount("tmpfs", base, "tmpfs")
        for name in ("upper", "work", "merged"):
            os.mkdir(f"{base}/{name}")  # noqa: PTH102 - a fork of a process with threads to come
        options = f"lowerdir=/usr,upperdir={base}/upper,workdir={base}/work"
        mount("overlay", f"{base}/merged", "overlay", options=options)
    except OSError as error:
        return f"this machine cannot mount overlays ({error.strerror}); pods need them"
    try:
        add_bridge("trial")
        add_veth("trial-end", "trial-peer", os.open("/proc/self/ns/net", os.O_RDONLY), "trial")
    except OSError as error:
        return f"this machine cannot make network links ({error.strerror}); pods need them"
    return ""
