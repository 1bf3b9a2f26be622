"""Sums up a machine's round: its phase, its conditions, and what is worth writing."""

from dataclasses import replace
from datetime import datetime

from novacron.controllers.round import PENDING, Round
from novacron.controllers.tied import Obstacle
from novacron.core.change import REASONS, How, told, worst
from novacron.core.conditions import Condition, condition_of, merge_conditions
from novacron.core.machine import Machine, Observed
from novacron.core.migration import DEVICES_STAY, HAS_DEVICES, LIVE_FORBIDDEN, NOT_ALLOWED
from novacron.core.report import MachineReport, phase_of, placed_of, ready_of
from novacron.core.steps import Done

__all__ = ["broken", "summarise", "with_devices"]


def summarise(
    machine: Machine,
    round_: Round,
    now: datetime,
    *,
    write_usage: bool,
    obstacle: Obstacle | None = None,
) -> MachineReport:
    """Return what a round found out; ``obstacle`` is what keeps it from all other hosts."""
    # A step that is done needs no condition of its own: Ready says that all are.
    claims: dict[str, Condition | None] = {
        name: None if isinstance(outcome, Done) else condition_of(name, outcome)
        for name, outcome in round_.outcomes.items()
    }
    claims["Ready"] = ready_of(machine, round_.outcomes, round_.seen)
    claims["LiveMigratable"] = _live_migratable(machine, round_, obstacle)
    claims["Reconciled"] = None
    claims |= {part.type: part for part in (round_.seen.parts if round_.seen else ())}
    if round_.snapshots is not None or not machine.snapshots.any:
        claims["Snapshotted"] = round_.snapshots.claim if round_.snapshots else None
    claims["RestartRequired"] = _restart_required(machine, round_)
    claims["ChangePending"] = _change_pending(machine, round_)
    if round_.refused:
        full = round_.outcomes["Created"]
        claims["Placed"] = Condition("Placed", "False", full.reason, full.message)
    elif machine.reserved == machine.wanted:
        claims["Placed"] = placed_of(machine)
    return MachineReport(
        phase=phase_of(machine, round_.seen, round_.outcomes),
        host=None if round_.refused else round_.host or machine.host,
        reserved=None if round_.refused else machine.reserved,
        refused_hosts=_refused_hosts(machine, round_),
        seen=round_.seen,
        conditions=merge_conditions(machine.conditions, claims, now),
        write_usage=write_usage,
        move=round_.move,
        leftovers=round_.leftovers,
        unreached=_unreached(machine, round_),
        snapshots=round_.snapshots,
        at=now,
    )


def with_devices(machine: Machine, host: str | None) -> Machine:
    """Return a machine that is on this host now with the devices that were set aside there.

    An address means another device on another host, so without any on record it has none.
    """
    if host is None or host == machine.host:
        return machine
    move = machine.move
    there = move.devices if move is not None and move.target == host else ()
    return replace(machine, devices=there)


def _unreached(machine: Machine, round_: Round) -> frozenset[str] | None:
    """Return those of the leftovers that the machine was on its way to and never came from."""
    if round_.leftovers is None:
        return None
    return (machine.unreached | round_.unreached) & round_.leftovers


def broken(machine: Machine, error: Exception, now: datetime) -> MachineReport:
    """Return what to write after a failure of our own: all stays, and one condition says so."""
    claim = Condition("Reconciled", "False", "InternalError", f"{type(error).__name__}: {error}")
    return MachineReport(
        phase=None,
        host=machine.host,
        reserved=machine.reserved,
        refused_hosts=machine.refused_hosts,
        seen=None,
        conditions=merge_conditions(machine.conditions, {"Reconciled": claim}, now),
    )


def _refused_hosts(machine: Machine, round_: Round) -> frozenset[str]:
    if round_.seen is not None:
        return frozenset()  # it found a home; old refusals are history
    if round_.refused and machine.host:
        return machine.refused_hosts | {machine.host}
    return machine.refused_hosts


def _live_migratable(machine: Machine, round_: Round, obstacle: Obstacle | None) -> Condition:
    name = "LiveMigratable"
    if not machine.live_migration_allowed:
        return Condition(name, "False", NOT_ALLOWED, LIVE_FORBIDDEN)
    if round_.seen is None:
        return Condition(name, "Unknown", "NotCreated", "VM does not exist yet")
    if (found := _own_obstacle(machine, round_.seen) or obstacle) is not None:
        return Condition(name, "False", *found)
    return Condition(name, "True", "MigrationCapable", "VM can be live migrated")


def _change_pending(machine: Machine, round_: Round) -> Condition | None:
    """Say what was asked for and has not taken effect, what that takes, and why not less."""
    pending = round_.seen.pending if round_.seen else ()
    if not pending:
        return None
    how, message = worst(pending), told(pending)
    if how is How.RESTART and not machine.restart_allowed:
        message += "; spec.updateStrategy allows no restart, so it waits until you make one"
    return Condition("ChangePending", "True", REASONS[how], message)


def _own_obstacle(machine: Machine, seen: Observed) -> Obstacle | None:
    """Return what is about a machine itself that keeps it from moving while it runs."""
    if not seen.live_migratable:
        return Obstacle("DriverCannotMigrate", "the host's driver cannot migrate machines live")
    if machine.devices:
        return Obstacle(HAS_DEVICES, DEVICES_STAY)
    if seen.immovable:
        return Obstacle("Immovable", seen.immovable)
    return None


def _restart_required(machine: Machine, round_: Round) -> Condition | None:
    if round_.seen is None or not round_.seen.awaits_restart:
        return None
    what = ", ".join(round_.seen.awaits_restart)
    when = "which follows" if machine.restart_allowed else "which is left to you"
    message = f"the change of {what} takes effect with a restart, {when}"
    return Condition("RestartRequired", "True", PENDING, message)
