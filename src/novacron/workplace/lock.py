"""One command at a time: whoever changes the state directory holds its lock."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from novacron.workplace.errors import AtWork
from novacron.workplace.files import private_directory

__all__ = ["holding"]


@contextmanager
def holding(path: Path, command: str, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold the lock for a while; when somebody else does, refuse at once and name the holder.

    Whoever gives ``on_wait`` is told and waits instead. The kernel drops the lock with the
    process that holds it, so none outlives a crash.
    """
    private_directory(path.parent)
    handle = _acquire(path, on_wait)
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"`{command}`, process {os.getpid()}".encode(), 0)
        yield
        os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def _acquire(path: Path, on_wait: Callable[[], None] | None) -> int:
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _lock(handle, path, on_wait)
            if _is_still(path, handle):
                return handle
        except BaseException:
            os.close(handle)
            raise
        # It was purged between opening and locking: what we hold is a file without a name.
        os.close(handle)


def _lock(handle: int, path: Path, on_wait: Callable[[], None] | None) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        if on_wait is None:
            holder = os.pread(handle, 200, 0).decode(errors="replace") or "starting up"
            raise AtWork(
                f"another novacron command ({holder}) is at work in {path.parent}; "
                f"wait until it is done"
            ) from error
        on_wait()
        fcntl.flock(handle, fcntl.LOCK_EX)


def _is_still(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False
