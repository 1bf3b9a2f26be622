"""The merge patch that turns one document into another (RFC 7386)."""

from typing import Any

__all__ = ["merge_patch"]


def merge_patch(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return what must be merged into ``before`` to get ``after``; empty when they are equal.

    Lists are replaced whole and None means absent, as merge patches have it.
    """
    patch: dict[str, Any] = {
        key: None for key, old in before.items() if old is not None and after.get(key) is None
    }
    for key, value in after.items():
        old = before.get(key)
        if value is None or value == old:
            continue
        if isinstance(value, dict) and isinstance(old, dict):
            if inner := merge_patch(old, value):
                patch[key] = inner
        else:
            patch[key] = value
    return patch
