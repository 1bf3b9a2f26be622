"""How often it is written down how far something is: every look finds it a little further."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from novacron.controllers.round import Round
from novacron.core.machine import Machine
from novacron.core.move import MoveReport
from novacron.core.steps import Wait

__all__ = ["Pace"]

AGAIN = timedelta(seconds=1)
# Most machines are up by then, and what came between was of no use to anybody. Where hundreds start
# at once they take longer, and each is told of less and less often.
DETAILS = timedelta(seconds=30)


@dataclass(slots=True)
class Pace:
    """When each machine's move was written down last, and that it is being started."""

    _written: dict[str, datetime] = field(default_factory=dict)
    _starting: dict[str, tuple[datetime, timedelta]] = field(default_factory=dict)

    def details_wait(self, machine: Machine, round_: Round, now: datetime) -> timedelta | None:
        """Return how long it may wait that something changed about a machine on its way up.

        None where it is to be written down now: it is not on its way, that was not said yet, or
        something is in its way.
        """
        waits = next((each for each in round_.outcomes.values() if isinstance(each, Wait)), None)
        told, seen = machine.condition("Ready"), round_.seen
        if waits is None or seen is None or seen.changing != "start" or seen.hindered:
            self._starting.pop(machine.uid, None)
            return None
        same = told is not None and told.reason == waits.reason
        told_at, pause = self._starting.setdefault(machine.uid, (now, DETAILS))
        if not same or machine.seen_generation != machine.generation:
            self._starting[machine.uid] = now, DETAILS
            return None
        if now - told_at >= pause:
            self._starting[machine.uid] = now, pause * 2
            return None
        return told_at + pause - now

    def may_wait(
        self, uid: str, before: MoveReport | None, move: MoveReport | None, now: datetime
    ) -> bool:
        """Say whether nothing is new but how far a move is, and that was told a moment ago."""
        if move is None:
            self.forget(uid)
            return False
        last = self._written.get(uid)
        if before is None or last is None or now - last >= AGAIN:
            return False
        return replace(before, progress=move.progress) == move

    def written(self, uid: str, now: datetime) -> None:
        """Note that it was told."""
        self._written[uid] = now

    def forget(self, uid: str) -> None:
        """Forget a machine that does not move."""
        self._written.pop(uid, None)

    def gone(self, uid: str) -> None:
        """Forget all about a machine."""
        self.forget(uid)
        self._starting.pop(uid, None)
