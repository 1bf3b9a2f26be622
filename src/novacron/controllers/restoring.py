"""Brings a machine back to one of its snapshots, once for each request.

What was done is known at the hypervisor, by the request's own word; a round that was cut off
finds it there. What cannot be done is on record as such and does not stop the machine.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from novacron.controllers.round import Scope
from novacron.core.errors import DriverError, Rejected, Unsupported
from novacron.core.snapshot import Restored, RestoreOrder, Snapshot, Snapshots
from novacron.core.steps import Done, Outcome, Wait
from novacron.core.volume import Attachment, Hold

__all__ = ["restore"]

SOON = timedelta(milliseconds=500)


async def restore(scope: Scope) -> Outcome:
    """Go back to the snapshot that was asked for."""
    order = scope.machine.snapshots.to_restore
    if order is None:
        return Done("Restored")
    driver: object = scope.driver
    if not isinstance(driver, Snapshots):
        return _refused(scope, order, Unsupported(f"host {scope.machine.host} keeps no snapshots"))
    target = await _found(scope, order)
    if target is None:
        return _refused(
            scope,
            order,
            Rejected(f"there is no snapshot {order.snapshot}", reason="SnapshotNotFound"),
        )
    if target.restored == order.request:
        return _succeeded(scope, order, target)
    scope.may_act()
    try:
        told = replace(order, elsewhere=_elsewhere(scope))
        accepted = await driver.restore_snapshot(scope.machine.ref, told)
    except (Rejected, Unsupported) as error:
        return _refused(scope, order, error)
    await scope.follow(accepted)
    return Wait("Restoring", scope.ordered or SOON, f"going back to snapshot {order.snapshot}")


def _elsewhere(scope: Scope) -> Mapping[str, str]:
    """Return volumes that the machine once had and another one has now, of whatever host."""
    seen = scope.seen.volumes if scope.seen else ()
    once = [each.id for each in seen if each.attachment is Attachment.DETACHED]
    return {one: holder for one in once if (holder := scope.held(one, Hold.ASKS))}


async def _found(scope: Scope, order: RestoreOrder) -> Snapshot | None:
    assert isinstance(scope.driver, Snapshots)
    there = await scope.driver.snapshots(scope.machine.ref)
    return next((each for each in there if each.name == order.snapshot), None)


def _succeeded(scope: Scope, order: RestoreOrder, target: Snapshot) -> Outcome:
    what = "disks and memory" if target.memory else "disks"
    message = f"{what} are as they were in snapshot {order.snapshot}"
    scope.restored = Restored(
        order.snapshot, order.request, succeeded=True, message=message, at=scope.now
    )
    scope.tell("Restored", message)
    return Done("Restored", message)


def _refused(scope: Scope, order: RestoreOrder, why: DriverError) -> Outcome:
    message = str(why)
    scope.restored = Restored(
        *(order.snapshot, order.request),
        succeeded=False,
        message=message,
        at=scope.now,
        reason=why.reason,
    )
    scope.tell("RestoreFailed", message)
    return Done("Restored", message)
