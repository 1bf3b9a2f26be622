"""Removing what we made, and nothing else.

The directories can be named by the user; a slip of the pen there must not cost anything that
is not ours, so only entries known by name are removed. The cache is shared by every checkout
and test run of the user and takes minutes to build again, so it goes only when asked for.
"""

import shutil
from pathlib import Path

from novacron.workplace.home import Home

__all__ = ["doomed", "purge"]

STATE = (
    *("cluster", "operator", "adopted.json", "welcomed-*"),
    *("hypervisor", "fleet", "images", "provider"),
)
CACHE = (
    *("kubernetes-v*", "kubevirt-v*", "go", "build.lock", ".building-*"),
    *("guest-*", ".guest-*"),
)
LOCK = ("lock",)


def doomed(home: Home, *, cache: bool) -> list[Path]:
    """Return what a purge would remove."""
    found = _matching(home.state, STATE)
    return found + (_matching(home.cache, CACHE) if cache else [])


def purge(home: Home, *, cache: bool) -> list[Path]:
    """Remove the state, and the cache when asked; directories only when nothing else is in them."""
    removed = doomed(home, cache=cache)
    # The lock goes last: until then it keeps others away.
    for path in (*removed, *_matching(home.state, LOCK)):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    for directory in (home.cache, home.state):
        if directory.is_dir() and not any(directory.iterdir()):
            directory.rmdir()
    return removed


def _matching(directory: Path, patterns: tuple[str, ...]) -> list[Path]:
    return [path for pattern in patterns for path in sorted(directory.glob(pattern))]
