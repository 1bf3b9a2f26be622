"""Conditions: what is true of a machine or a host, since when, and why.

Timestamps move only with a change, so that a round in which nothing happened writes nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from novacron.core.steps import Blocked, Done, Outcome, Wait

__all__ = ["Condition", "condition_of", "merge_conditions"]


@dataclass(frozen=True, slots=True)
class Condition:
    """One claim: True, False or Unknown, with a reason to search for and a sentence to read."""

    type: str
    status: str
    reason: str
    message: str = ""
    probed: datetime | None = None
    since: datetime | None = None

    def same_claim(self, other: "Condition") -> bool:
        """Say whether both claim the same, whenever it was."""
        return (self.status, self.reason, self.message) == (
            other.status,
            other.reason,
            other.message,
        )


def condition_of(name: str, outcome: Outcome) -> Condition:
    """Return the condition a step's outcome stands for."""
    match outcome:
        case Done(reason, message, _):
            return Condition(name, "True", reason, message)
        case Wait(reason, _, message):
            return Condition(name, "Unknown", reason, message)
        case Blocked(reason, message, _):
            return Condition(name, "False", reason, message)


def merge_conditions(
    before: Iterable[Condition],
    changes: Mapping[str, Condition | None],
    now: datetime,
) -> tuple[Condition, ...]:
    """Return the conditions after some changed; those not named stay, None takes one away."""
    known = {condition.type: condition for condition in before}
    for name, claim in changes.items():
        old = known.pop(name, None) if claim is None else known.get(name)
        if claim is None or (old is not None and old.same_claim(claim)):
            continue
        kept = old.since if old is not None and old.status == claim.status else None
        known[name] = replace(claim, probed=now, since=kept or now)
    return tuple(known.values())
