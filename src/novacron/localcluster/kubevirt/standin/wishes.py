"""What a test, or somebody who tries things out, wants to go wrong.

``stand-in.novacron.io/hold`` on a Pod, a VirtualMachineInstance or a claim: nothing happens to it
as long as it is there. On a StorageClass: none of its claims gets a volume. On a Node: it is dead.
``stand-in.novacron.io/fail`` with a message, on the same objects except nodes: it fails with it.
Annotations of a VirtualMachine's template become those of its instance, where they are heeded,
and those of its pod, where they are then not.
"""

from collections.abc import Iterable

from novacron.runtime.resource import Object

__all__ = ["FAIL", "HOLD", "failure", "held", "wishes"]

HOLD = "stand-in.novacron.io/hold"
FAIL = "stand-in.novacron.io/fail"


def wishes(obj: Object) -> bool:
    """Say whether an object carries any of the two."""
    return not {HOLD, FAIL}.isdisjoint(_annotations(obj))


def held(obj: Object | None) -> bool:
    """Say whether nothing is to happen to an object."""
    return HOLD in _annotations(obj)


def failure(objects: Iterable[Object | None]) -> str | None:
    """Return with which message the first of them that is to fail does so."""
    return next((note[FAIL] for note in map(_annotations, objects) if FAIL in note), None)


def _annotations(obj: Object | None) -> dict[str, str]:
    return ((obj or {}).get("metadata") or {}).get("annotations") or {}
