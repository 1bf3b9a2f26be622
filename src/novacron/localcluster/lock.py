"""One command at a time: whoever changes the state directory holds its lock."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from novacron.localcluster.errors import ClusterBusy
from novacron.localcluster.files import private_directory

__all__ = ["holding"]


@contextmanager
def holding(path: Path, command: str, *, patient: bool = False) -> Iterator[None]:
    """Hold the lock for a while; refuse at once, naming the holder, when somebody else does.

    The patient wait instead until it is free. The kernel drops the lock with the process that
    holds it, so none outlives a crash.
    """
    private_directory(path.parent)
    handle = _acquire(path, patient=patient)
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"`{command}`, process {os.getpid()}".encode(), 0)
        yield
        os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def _acquire(path: Path, *, patient: bool) -> int:
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if patient else fcntl.LOCK_NB))
        except BlockingIOError as error:
            holder = os.pread(handle, 200, 0).decode(errors="replace") or "starting up"
            os.close(handle)
            raise ClusterBusy(
                f"another novacron command ({holder}) is at work in {path.parent}; "
                f"wait until it is done"
            ) from error
        if _is_still(path, handle):
            return handle
        # It was purged between opening and locking: what we hold is a file without a name.
        os.close(handle)


def _is_still(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False
