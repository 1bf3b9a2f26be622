"""What a changed machine costs while it runs: nothing, a move to another node, or a restart."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

__all__ = ["REASONS", "Change", "How", "told", "worst"]


class How(IntEnum):
    """What a change costs, the dearest last."""

    LIVE = 0
    MIGRATION = 1
    RESTART = 2


# The word that stands for each in a condition, and how it is said in a sentence.
REASONS = {How.LIVE: "Live", How.MIGRATION: "LiveByMigration", How.RESTART: "NeedsRestart"}
WORDS = {
    How.LIVE: "while it runs",
    How.MIGRATION: "by moving it to another node",
    How.RESTART: "by a restart",
}


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that is to change and has not yet, what that costs, and why it is not less.

    ``part`` is the part of the machine that it is about.
    """

    part: str
    what: str
    how: How
    why: str = ""


def worst(changes: Iterable[Change]) -> How:
    """Return what all the changes together cost."""
    return max((change.how for change in changes), default=How.LIVE)


def told(changes: Iterable[Change]) -> str:
    """Return the changes as a sentence of a condition."""
    return "; ".join(
        f"{change.what} {WORDS[change.how]}{f', for {change.why}' if change.why else ''}"
        for change in changes
    )
