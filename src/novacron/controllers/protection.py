"""Holds up the deletion of a machine that has snapshots which must not go with it."""

from collections.abc import Collection
from datetime import timedelta

from novacron.controllers.round import Scope
from novacron.controllers.snapshots import TROUBLE_AGAIN, listed
from novacron.core.snapshot import Snapshots
from novacron.core.steps import Blocked

__all__ = ["protect"]

SOON = timedelta(milliseconds=500)


async def protect(scope: Scope) -> Blocked | None:
    """Return what the deletion waits for, if there are snapshots that are not to go."""
    wishes = scope.machine.snapshots
    if not wishes.protect or not isinstance(scope.driver, Snapshots):
        return None
    if scope.seen is None:
        # Whoever took it away may have left its disks, with all that is within them.
        return _held(wishes.protected, TROUBLE_AGAIN)
    there = await listed(scope.driver, scope)
    for name in sorted(wishes.unwanted & set(there)):
        scope.may_act()
        await scope.driver.remove_snapshot(scope.machine.ref, name)
        there = await listed(scope.driver, scope)
    names = wishes.protected.union(there)
    return _held(names, SOON if wishes.unwanted & names else TROUBLE_AGAIN)


def _held(names: Collection[str], again: timedelta) -> Blocked | None:
    if not names:
        return None
    named = ", ".join(sorted(names)[:5]) + (", …" if len(names) > 5 else "")
    return Blocked(
        "SnapshotsProtected",
        f"it has {len(names)} snapshots ({named}), and spec.snapshotPolicy.onDelete is Protect; "
        "delete them, or set onDelete to Delete",
        again,
    )
