"""Running the programs that an image is made with."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from novacron.guests.errors import ImageFailed

__all__ = ["run"]

# Debian keeps mke2fs where only root's PATH leads.
SYSTEM_PROGRAMS = ("/usr/sbin", "/sbin")


def run(
    arguments: Sequence[str | Path],
    *,
    directory: Path | None = None,
    first: Path | None = None,
    text: str | None = None,
) -> str:
    """Run a program and return what it printed; ``first`` is looked in before the PATH."""
    usual = (os.environ.get("PATH", os.defpath), *SYSTEM_PROGRAMS)
    path = os.pathsep.join((str(first), *usual) if first else usual)
    try:
        done = subprocess.run(
            arguments,
            input=text,
            cwd=directory,
            env={**os.environ, "PATH": path, "LC_ALL": "C.UTF-8"},
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise ImageFailed(f"{arguments[0]} does not run: {error.strerror}") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise ImageFailed(f"{Path(arguments[0]).name} failed: {said[-1]}")
    return done.stdout
