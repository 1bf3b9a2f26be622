"""What lifecycle hooks of a machine's template mean to the core."""

from datetime import timedelta
from typing import Any

from novacron.core.hooks import (
    NO_HOOKS,
    WITHOUT_LIMIT,
    GuestProgram,
    Hook,
    Hooks,
    HttpRequest,
)

__all__ = ["hooks_of"]

Object = dict[str, Any]


def hooks_of(lifecycle: Object | None) -> Hooks:
    """Return the hooks that a template declares."""
    if not lifecycle:
        return NO_HOOKS
    return Hooks(_hook(lifecycle.get("preStart")), _hook(lifecycle.get("preStop")))


def _hook(written: Object | None) -> Hook | None:
    if not written:
        return None
    action = written.get("exec") or written["httpGet"]
    timeout = WITHOUT_LIMIT
    if seconds := action.get("timeoutSeconds"):
        timeout = timedelta(seconds=seconds)
    if "exec" in written:
        return GuestProgram(tuple(action["command"]), timeout)
    return HttpRequest(
        port=action["port"],
        path=action.get("path") or "/",
        host=action.get("host"),
        encrypted=action.get("scheme") == "HTTPS",
        headers=tuple((each["name"], each["value"]) for each in action.get("httpHeaders") or ()),
        timeout=timeout,
    )
