"""How a change that needs a restart may be made, as an update strategy says."""

from collections.abc import Mapping
from typing import Any

__all__ = ["restart_allowed", "restart_at_once"]


def restart_allowed(strategy: Mapping[str, Any]) -> bool:
    """Say whether a change may cost a restart; no machine may be away at once is a no."""
    rolling = strategy.get("rollingUpdate") or {}
    return int(str(rolling.get("maxUnavailable", 1)).rstrip("%")) != 0


def restart_at_once(strategy: Mapping[str, Any]) -> bool:
    """Say whether the restart need not be announced first."""
    return strategy.get("type") == "Recreate"
