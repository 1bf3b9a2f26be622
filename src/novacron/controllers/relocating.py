"""Moves a machine between the nodes of its own hypervisor, once for each request.

Runs after the steps of a machine and stops none of them: it runs on meanwhile. A request becomes a
record with an id of its own before anything is done, and the hypervisor knows the move by that.
"""

from dataclasses import replace
from uuid import uuid4

from novacron.controllers.round import Scope
from novacron.core.errors import Rejected, Unsupported
from novacron.core.machine import Machine, Power
from novacron.core.migration import LIVE_FORBIDDEN, NOT_ALLOWED
from novacron.core.move import Move, MoveReport, MoveResult
from novacron.core.relocation import Relocation

__all__ = ["is_over", "order_for", "relocate"]


def order_for(machine: Machine) -> Move | None:
    """Return the order that a request becomes; None where there is none, or one is on record."""
    request, on_record = machine.move_request, machine.relocation is not None or machine.move_over
    if request is None or on_record or machine.move_cancelled:
        return None
    return Move(uuid4().hex[:12], "", request.to or "", why="asked for")


def is_over(machine: Machine) -> bool:
    """Say whether what is left of a request or a record is to be taken away."""
    return machine.move_over or (machine.move_cancelled and machine.relocation is None)


async def relocate(scope: Scope) -> MoveReport | None:
    """Go on with the move that is on record; without one, tell of what was moved by others."""
    order = scope.machine.relocation
    if order is None:
        return _by_others(scope)
    if not isinstance(scope.driver, Relocation):
        return _refused(scope, order, "Unsupported", "its hypervisor moves no machines")
    found = await scope.driver.relocation(scope.machine.ref, order)
    if found is None:
        return await _begin(scope, scope.driver, order)
    if found.result is None and scope.machine.move_cancelled:
        scope.may_act()
        await scope.driver.cancel_relocation(scope.machine.ref, order)
    if found.result is MoveResult.FAILED and scope.machine.move_cancelled:
        # One that was about to begin fails when it is told to end.
        found = replace(found, result=MoveResult.CANCELLED, reason="Cancelled", message="")
    if found.result is not None:
        scope.tell("Migrated", _told(found))
    return found


async def _begin(scope: Scope, driver: Relocation, order: Move) -> MoveReport:
    machine, last = scope.machine, scope.machine.last_move
    begun = last is not None and last.id == order.id
    if machine.move_cancelled:
        return _ended(scope, order, MoveResult.CANCELLED, "Cancelled", "it stays where it is")
    if begun:
        return _ended(scope, order, MoveResult.FAILED, "Removed", "somebody else ended the move")
    if (why := _hindrance(scope, order)) is not None:
        return _refused(scope, order, *why)
    scope.may_act()
    try:
        await driver.relocate(machine.ref, order)
    except (Rejected, Unsupported) as error:
        return _refused(scope, order, error.reason, str(error))
    assert scope.seen is not None
    where = f"to {order.target}" if order.target else "to another node"
    scope.tell("Migrating", f"moves from {scope.seen.node} {where}")
    return MoveReport(order.id, scope.seen.node, order.target or None, started=scope.now)


def _hindrance(scope: Scope, order: Move) -> tuple[str, str] | None:
    seen = scope.seen
    if not scope.machine.live_migration_allowed:
        return NOT_ALLOWED, LIVE_FORBIDDEN
    if seen is None or seen.power is Power.OFF:
        return "NotRunning", "it is off: it starts on whichever node has room"
    if seen.immovable:
        return "Immovable", seen.immovable
    if order.target and order.target == seen.node:
        return "AlreadyThere", f"it is on {order.target} already"
    return None


def _by_others(scope: Scope) -> MoveReport | None:
    """Return a move that somebody else ordered, unless it is on record as it is."""
    moved = scope.seen.moved if scope.seen else None
    last = scope.machine.last_move
    if moved is None or (last and _outline(last) == _outline(moved)):
        return None
    return moved


def _outline(move: MoveReport) -> tuple[object, ...]:
    return move.source, move.target, move.started, move.ended, move.result


def _refused(scope: Scope, order: Move, reason: str, message: str) -> MoveReport:
    return _ended(scope, order, MoveResult.REFUSED, reason, message)


def _ended(scope: Scope, order: Move, result: MoveResult, reason: str, message: str) -> MoveReport:
    last = scope.machine.last_move
    before = last if last and last.id == order.id else MoveReport(order.id)
    node = scope.seen.node if scope.seen else None
    report = replace(
        before,
        source=before.source or node,
        target=before.target or order.target or None,
        ended=scope.now,
        result=result,
        reason=reason,
        message=message,
    )
    scope.tell("Migrated", _told(report))
    return report


def _told(report: MoveReport) -> str:
    if report.result is MoveResult.SUCCEEDED:
        return f"moved from {report.source} to {report.target}"
    result = report.result.value.lower() if report.result else "under way"
    return f"stays on {report.source}, the move is {result}: {report.message or report.reason}"
