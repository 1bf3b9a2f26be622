"""How a VirtualMachine may travel, and all that its object says of moves."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from novacron.core.machine import Holding
from novacron.core.move import MovePolicy
from novacron.core.quantity import parse_bandwidth
from novacron.families.move_record import MIGRATE_CANCEL, last_move, move_of, request_of
from novacron.families.novacron.placement_record import wants_elsewhere
from novacron.families.seal import Seal

__all__ = ["booked", "move_fields"]

Object = dict[str, Any]


def policy_of(spec: Object) -> MovePolicy:
    """Return how the machine may travel."""
    policy = spec.get("migrationPolicy") or {}
    bandwidth = policy.get("bandwidth")
    return MovePolicy(
        compression=policy.get("compression", True),
        encrypted=policy.get("encrypted", False),
        bandwidth_bytes=None if bandwidth is None else parse_bandwidth(str(bandwidth)),
    )


def booked(obj: Object, holding: Callable[[Object], Holding | None], seal: Seal) -> Holding | None:
    """Return what is reserved for a machine where it moves to, with other devices."""
    move, _ = move_of(obj, seal)
    held = None if move is None else holding(obj)
    if move is None or held is None:
        return None
    return replace(held, host=move.target, devices=move.devices)


def move_fields(obj: Object, seal: Seal) -> dict[str, Any]:
    """Return all that a machine's object says of moves."""
    metadata, status = obj["metadata"], obj.get("status") or {}
    move, over = move_of(obj, seal)
    return {
        "move_policy": policy_of(obj["spec"]),
        "move_request": request_of(obj),
        "move_cancelled": MIGRATE_CANCEL in (metadata.get("annotations") or {}),
        "move": move,
        "move_over": over,
        "last_move": last_move(status),
        "wishes_changed": wants_elsewhere(obj, seal),
        "guest_cpu": status.get("guestCpu") or "",
        "leftovers": frozenset(status.get("leftoverHosts") or ()),
        "unreached": frozenset(status.get("unreachedHosts") or ()),
    }
