"""What one round found out about a machine, for its family to write down in its own words."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from novacron.core.conditions import Condition
from novacron.core.machine import Machine, Observed, Power, Resources
from novacron.core.move import MoveReport
from novacron.core.snapshot import SnapshotReport
from novacron.core.steps import Blocked, Done, Outcome

__all__ = [
    "MIGRATING",
    "STOPPING_TO_MOVE",
    "MachineReport",
    "Phase",
    "phase_of",
    "placed_of",
    "ready_of",
]

# Reasons of a step that could not look at the machine.
UNSEEN = frozenset({"HostUnreachable", "HostTrouble", "OtherHost"})
# The reason of a step that waits for a move.
MIGRATING = "Migrating"
# On its way too: it cannot move while it runs, so it is stopped first.
STOPPING_TO_MOVE = "StoppingToMove"


class Phase(StrEnum):
    """A machine's state in one word; derived, and never read to decide anything."""

    PENDING = "Pending"
    RUNNING = "Running"
    MIGRATING = "Migrating"
    STOPPED = "Stopped"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class MachineReport:
    """Everything a family's status can say; ``phase`` is None when nobody can tell.

    Without ``move`` what was written about the last one stays, and without ``leftovers`` and
    ``unreached`` those.
    ``at`` is when all this was found out.
    """

    phase: Phase | None
    host: str | None
    reserved: Resources | None
    refused_hosts: frozenset[str]
    seen: Observed | None
    conditions: tuple[Condition, ...]
    write_usage: bool = False
    move: MoveReport | None = None
    leftovers: frozenset[str] | None = None
    unreached: frozenset[str] | None = None
    snapshots: SnapshotReport | None = None
    at: datetime | None = None


def phase_of(machine: Machine, seen: Observed | None, outcomes: dict[str, Outcome]) -> Phase | None:
    """Derive the phase from what was seen and where the steps stopped."""
    last = next(reversed(outcomes.values()), None)
    if seen is None:
        return Phase.FAILED if isinstance(last, Blocked) else _unseen(machine, last)
    if last is not None and last.reason in (MIGRATING, STOPPING_TO_MOVE):
        return Phase.MIGRATING
    if seen.power is Power.ON:
        # One that stands still waits for somebody, though nothing of it is lost.
        stands_still = seen.hindered is not None and seen.changing is None
        return Phase.FAILED if stands_still else Phase.RUNNING
    if machine.power is Power.OFF:
        return Phase.STOPPED
    return Phase.FAILED if isinstance(last, Blocked) else Phase.PENDING


def _unseen(machine: Machine, last: Outcome | None) -> Phase | None:
    # A machine that could not be asked about, or was not, is as it was, for all anyone knows.
    unknown = isinstance(last, Done) or (last is not None and last.reason in UNSEEN)
    return None if unknown and machine.host is not None else Phase.PENDING


def ready_of(
    machine: Machine, outcomes: dict[str, Outcome], seen: Observed | None = None
) -> Condition:
    """Derive Ready: every step is done and the machine runs as it should."""
    if seen is not None and seen.unsure is not None:
        return Condition("Ready", "Unknown", seen.unsure.reason, seen.unsure.message)
    for name, outcome in outcomes.items():
        if outcome.reason == MIGRATING and machine.move and machine.move.live:
            message = f"VM is running and moves to host {machine.move.target}"
            return Condition("Ready", "True", MIGRATING, message)
        if not isinstance(outcome, Done):
            status = "Unknown" if outcome.reason in UNSEEN else "False"
            return Condition("Ready", status, outcome.reason, outcome.message or f"{name} waits")
    return _ready_as_seen(machine, seen)


def _ready_as_seen(machine: Machine, seen: Observed | None) -> Condition:
    """Derive Ready of a machine for which nothing is left to do."""
    if seen is None:
        return Condition("Ready", "Unknown", "NotLookedAt", "VM was not looked at just now")
    if machine.power is Power.OFF:
        return Condition("Ready", "False", "Stopped", "VM is stopped, as asked")
    if seen.power is Power.OFF:
        return Condition("Ready", "False", "NotStarted", "VM is not started yet")
    return Condition("Ready", "True", "VMReady", "VM is running and ready")


def placed_of(machine: Machine) -> Condition | None:
    """Say why the machine is where it is, if that was recorded."""
    if machine.host is None or not machine.placed_because:
        return None
    return Condition("Placed", "True", "HostChosen", machine.placed_because)
