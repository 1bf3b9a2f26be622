"""Where everything of the local cluster lives on disk."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CACHE_VARIABLE", "HOME_VARIABLE", "Home"]

HOME_VARIABLE = "NOVACRON_HOME"
CACHE_VARIABLE = "NOVACRON_CACHE"


@dataclass(frozen=True, slots=True)
class Home:
    """The state directory, and the cache of things that can be made again."""

    state: Path
    cache: Path

    @classmethod
    def default(cls, environment: Mapping[str, str] = os.environ) -> "Home":
        """Read the places from the environment; by default the user's XDG directories."""
        given = environment.get(HOME_VARIABLE)
        user = Path(environment.get("HOME") or Path.home())
        state = Path(given) if given else _xdg(environment, "XDG_STATE_HOME", user / ".local/state")
        default_cache = (
            state / "cache" if given else _xdg(environment, "XDG_CACHE_HOME", user / ".cache")
        )
        cache = Path(environment.get(CACHE_VARIABLE) or default_cache)
        return cls(state.absolute(), cache.absolute())

    @property
    def cluster(self) -> Path:
        """Return where the control plane keeps its certificates, data and logs."""
        return self.state / "cluster"

    @property
    def hypervisor(self) -> Path:
        """Return where our own hypervisor keeps its guests."""
        return self.state / "hypervisor"

    @property
    def lock(self) -> Path:
        """Return the file that one command at a time holds."""
        return self.state / "lock"


def _xdg(environment: Mapping[str, str], variable: str, default: Path) -> Path:
    # The standard says that relative paths are invalid and to be ignored.
    given = Path(environment.get(variable) or "")
    return (given if given.is_absolute() else default) / "novacron"
