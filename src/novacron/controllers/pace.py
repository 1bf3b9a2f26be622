"""How often it is written down how far a move is: every look finds it a little further."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from novacron.core.move import MoveReport

__all__ = ["Pace"]

AGAIN = timedelta(seconds=1)


@dataclass(slots=True)
class Pace:
    """When each machine's move was written down last."""

    _written: dict[str, datetime] = field(default_factory=dict)

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
