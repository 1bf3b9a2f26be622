"""What is counted about a Machine, from the object alone; every label has few values."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from novacron.families.viti.nics import nics_of
from novacron.families.viti.templates import BUILT_IN

__all__ = ["ERROR_TYPES", "OTHER", "Tally", "tally"]

Object = dict[str, Any]

# The specification's words for what goes wrong.
ERROR_TYPES = frozenset(
    {
        "TemplateNotFound",
        "NetworkConfigurationNotFound",
        "StorageClassNotFound",
        "InsufficientResources",
        "KubeVirtApiError",
    }
)
# For whatever users may call as they like.
OTHER = "other"
# What is not done yet is no error.
UNDERWAY = frozenset({"Creating", "Starting", "Stopping", "Stopped", "Resizing", "Restarting"})


@dataclass(frozen=True, slots=True)
class Tally:
    """What a Machine counts as; ``error`` and ``networks`` are empty where nothing is wrong."""

    phase: str
    template: str
    error: str
    networks: tuple[str, ...]


def tally(obj: Object, is_class: Callable[[str], bool], is_network: Callable[[str], bool]) -> Tally:
    """Return what a Machine counts as, where one can ask which classes and networks there are."""
    spec, status = obj["spec"], obj.get("status") or {}
    name = spec.get("template") or spec.get("machineClass") or ""
    claims = {each["type"]: each for each in status.get("conditions") or ()}
    return Tally(
        status.get("phase") or "Pending",
        name if not name or name in BUILT_IN or is_class(name) else OTHER,
        _error(claims.get("Ready") or {}),
        _networks(obj, is_network) if _is_false(claims, "NetworkReady") else (),
    )


def _is_false(claims: dict[str, Object], name: str) -> bool:
    return bool((claims.get(name) or {}).get("status") == "False")


def _error(ready: Object) -> str:
    reason = ready.get("reason", "")
    if ready.get("status") in (None, "True") or reason in UNDERWAY:
        return ""
    return reason if reason in ERROR_TYPES else OTHER


def _networks(obj: Object, is_network: Callable[[str], bool]) -> tuple[str, ...]:
    """Return which networks are at fault: those that are not there, or else all."""
    nics = nics_of(obj["spec"], obj["metadata"]["uid"])
    named = {nic.network for nic in nics if nic.network is not None}
    missing = {each for each in named if not is_network(each)}
    return tuple(sorted(missing or named))
