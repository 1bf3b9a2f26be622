"""Which code of ours is installed, so that ``up`` runs what is there now."""

from pathlib import Path

import novacron

__all__ = ["code_version"]


def code_version() -> str:
    """Return what changes when our own code does."""
    package = Path(novacron.__file__).parent
    newest = max(path.stat().st_mtime_ns for path in package.rglob("*.py"))
    return f"{novacron.__version__}-{newest}"
