"""SQLite's failures in the core's words; the only place that knows both."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from novacron.core.errors import Busy, DriverError, Unreachable

__all__ = ["core_errors", "translated"]

# A transaction takes microseconds, so whoever held the lock past the busy timeout is stuck
# or stopped: there is no hurry to ask again.
LOCKED_AGAIN = timedelta(seconds=1)
# The low byte of an extended result code is the plain one.
PLAIN_CODE = 0xFF


def translated(error: sqlite3.Error, path: Path) -> DriverError:
    """Return the core's failure for one of SQLite's.

    A locked file frees itself. All else (unreadable, full, damaged, not a database) is what a
    hypervisor that does not answer is to the operator: back off until somebody mended it.
    """
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & PLAIN_CODE
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        message = f"another process keeps the simulation file {path} locked"
        return Busy(message, LOCKED_AGAIN)
    return Unreachable(f"the simulation file {path} cannot be used: {error}")


@contextmanager
def core_errors(path: Path) -> Iterator[None]:
    """Let nothing of SQLite's out of the driver."""
    try:
        yield
    except sqlite3.Error as error:
        raise translated(error, path) from error
    except OSError as error:
        raise Unreachable(f"the simulation file {path} cannot be used: {error}") from error
