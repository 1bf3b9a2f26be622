"""Removing what we made, and nothing else.

The directories can be named by the user; a slip of the pen there must not cost anything that
is not ours, so only entries known by name are removed.
"""

import shutil
from pathlib import Path

from novacron.localcluster.home import Home

__all__ = ["purge"]

STATE = ("cluster", "operator", "adopted.json", "welcomed-*")
CACHE = ("kubernetes-v*", "go", ".building-*", ".go-*")
LOCK = ("lock",)


def purge(home: Home, *, keep_cache: bool) -> list[Path]:
    """Remove state and cache, and their directories when nothing else is in them."""
    removed = _remove(home.state, STATE)
    if not keep_cache:
        removed += _remove(home.cache, CACHE)
    # The lock goes last: until then it keeps others away.
    _remove(home.state, LOCK)
    for directory in (home.cache, home.state):
        if directory.is_dir() and not any(directory.iterdir()):
            directory.rmdir()
    return removed


def _remove(directory: Path, patterns: tuple[str, ...]) -> list[Path]:
    found = [path for pattern in patterns for path in directory.glob(pattern)]
    for path in found:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    return found
