"""Network namespaces: made, entered for a moment, and held by nothing but an open handle.

A namespace lives as long as a process is in it or somebody holds a handle, so nothing is left
of it when all have gone, however they went.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from novacron.localcluster.node.kernel import CLONE_NEWNET, setns, unshare

__all__ = ["inside", "namespace_of", "new_namespace"]

OWN = "/proc/thread-self/ns/net"


def new_namespace() -> int:
    """Make a network namespace and return a handle that keeps it."""
    with _returning():
        unshare(CLONE_NEWNET)
        return _open(OWN)


def namespace_of(pid: int) -> int:
    """Return a handle of the namespace that a process is in."""
    return _open(f"/proc/{pid}/ns/net")


@contextmanager
def inside(namespace: int) -> Iterator[None]:
    """Let this thread act in a namespace; what it opens there stays there.

    Nothing may be awaited meanwhile: other tasks of the thread would act there too.
    """
    with _returning():
        setns(namespace, CLONE_NEWNET)
        yield


@contextmanager
def _returning() -> Iterator[None]:
    own = _open(OWN)
    try:
        yield
    finally:
        setns(own, CLONE_NEWNET)
        os.close(own)


def _open(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
