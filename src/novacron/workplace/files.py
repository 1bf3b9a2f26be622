"""Writing small files so that a crash leaves the old one or the new one, never half of it."""

import os
import tempfile
from pathlib import Path

from novacron.workplace.errors import WorkplaceError

__all__ = ["private_directory", "write_private"]

REMEDY = "point NOVACRON_HOME at a directory of your own"


def private_directory(path: Path) -> Path:
    """Make the directory and its parents; only the user may look inside it."""
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise WorkplaceError(f"{path} cannot be made ({error.strerror}); {REMEDY}") from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise WorkplaceError(f"this user may not write to {path}; {REMEDY}")
    return path


def write_private(path: Path, content: str | bytes) -> Path:
    """Replace the file in one step, readable by the user alone."""
    data = content.encode() if isinstance(content, str) else content
    private_directory(path.parent)
    # mkstemp makes the file with mode 0600, so the content is never open to others.
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path
