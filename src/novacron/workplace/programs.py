"""Programs of the system, found also where only root's PATH leads to."""

import os
import shutil

__all__ = ["SEARCH", "find_program"]

SEARCH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin"))


def find_program(name: str) -> str | None:
    """Return where a program is, or None when this machine has none of that name."""
    return shutil.which(name, path=SEARCH)
