"""One machine in one round: what is wanted, what is there, what was done, and how it ended."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from novacron.controllers.requests import Requests
from novacron.controllers.restarts import Restarts
from novacron.core.driver import Accepted, Driver
from novacron.core.hooks import Ran
from novacron.core.machine import (
    GUEST_CRASHED,
    GUEST_PAUSED,
    GUEST_SUSPENDED,
    Machine,
    Observed,
)
from novacron.core.move import MoveReport
from novacron.core.snapshot import Restored, SnapshotReport
from novacron.core.steps import Done, Outcome, Wait
from novacron.core.volume import Hold

__all__ = [
    "BACK_OFF",
    "HOOK_FAILED",
    "HOOK_RUNNING",
    "PENDING",
    "Happening",
    "Round",
    "Scope",
]

SOON = timedelta(milliseconds=500)
BACK_OFF = "BackOff"
PENDING = "PendingChanges"
HOOK_RUNNING = "HookRunning"
HOOK_FAILED = "HookFailed"
# What Ready says of a machine whose guest was up.
UP = frozenset({BACK_OFF, HOOK_RUNNING, HOOK_FAILED, GUEST_CRASHED, GUEST_PAUSED, GUEST_SUSPENDED})


@dataclass(frozen=True, slots=True)
class Happening:
    """Something worth telling the user once."""

    reason: str
    message: str
    warning: bool = False


@dataclass(slots=True)
class Scope:
    """One machine in one round: what is wanted, what is there, and what was done about it.

    ``may_act`` is asked right before each order to a host and raises when this process has lost
    the right to give any. ``held`` names another machine that holds a volume at least so much,
    wherever it is. ``overdrawn`` says of what its host was promised more than it has.
    """

    machine: Machine
    driver: Driver
    seen: Observed | None
    may_act: Callable[[], object]
    now: datetime
    grace: timedelta
    restarts: Restarts
    requests: Requests
    held: Callable[[str, Hold], str | None]
    overdrawn: Callable[[], str | None]
    refused: bool = False
    ordered: timedelta | None = None
    happened: list[Happening] = field(default_factory=list)
    restored: Restored | None = None

    async def follow(self, accepted: Accepted) -> None:
        """See what became of an order; one that takes time is looked at when it is due."""
        self.ordered = accepted.look_again or None
        if self.ordered is None:
            self.seen = accepted.seen or await self.driver.observe(self.machine.ref)

    @property
    def next_look(self) -> timedelta:
        """When what is under way should be over, as far as anyone can tell."""
        return (self.seen.due if self.seen else None) or self.ordered or SOON

    def tell(self, reason: str, message: str) -> None:
        """Note what was done, for the user."""
        self.happened.append(Happening(reason, message))

    def since(self, condition: str, reason: str) -> datetime | None:
        """Return since when a condition has had this reason, as it was written down."""
        claim = self.machine.condition(condition)
        return claim.probed if claim is not None and claim.reason == reason else None

    def ran(self, name: str) -> Ran | None:
        """Return what was done under a name since the guest was started."""
        done = self.seen.ran if self.seen else ()
        return next((each for each in done if each.name == name), None)

    @property
    def died(self) -> bool:
        """Say whether the machine ran, is off now, and nobody here wanted that."""
        ready = self.machine.condition("Ready")
        ran = ready is not None and (ready.status == "True" or ready.reason in UP)
        return ran and self.seen is not None and self.seen.ended is not None


@dataclass(frozen=True, slots=True)
class Round:
    """How a round ended.

    ``host`` is where the machine is now, where that is not where it was; ``move`` and ``leftovers``
    are None where nothing is new about them. ``unreached`` are those of the leftovers to which it
    turned out just now that the machine never got.
    """

    outcomes: dict[str, Outcome]
    seen: Observed | None = None
    refused: bool = False
    happened: tuple[Happening, ...] = ()
    snapshots: SnapshotReport | None = None
    snapshots_again: timedelta | None = None
    host: str | None = None
    move: MoveReport | None = None
    leftovers: frozenset[str] | None = None
    unreached: frozenset[str] = frozenset()

    @property
    def look_again(self) -> timedelta | None:
        """When the next round is due without any change."""
        due = [outcome.after for outcome in self.outcomes.values()]
        return min(
            (each for each in (*due, self.snapshots_again) if each is not None), default=None
        )

    @property
    def brief(self) -> bool:
        """Say whether it is not worth writing down; what became of snapshots always is."""
        return self.snapshots is None and any(
            isinstance(each, Wait) and each.brief for each in self.outcomes.values()
        )

    @property
    def settled(self) -> bool:
        """Say whether every step is done."""
        return all(isinstance(outcome, Done) for outcome in self.outcomes.values())
