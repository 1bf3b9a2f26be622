"""How soon a guest that died is started again: at once, and ever later while it keeps dying."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

__all__ = ["Restarts"]

FIRST = timedelta(seconds=1)
LONGEST = timedelta(minutes=5)
# A guest that ran for so long did not die of how it was started.
STEADY = timedelta(minutes=5)


@dataclass(slots=True)
class _Record:
    deaths: int = 0
    started: datetime | None = None
    down: datetime | None = None


@dataclass(slots=True)
class Restarts:
    """Remembers deaths, by the machine's UID; an operator that was restarted begins anew."""

    _records: dict[str, _Record] = field(default_factory=dict)

    def pause(self, uid: str, now: datetime) -> timedelta:
        """Note that a machine was found dead; return how long to wait before it is started."""
        record = self._records.setdefault(uid, _Record())
        if record.down is None:
            steady = record.started is not None and now - record.started >= STEADY
            record.deaths = 0 if steady else record.deaths
            record.down = now
        delay = min(FIRST * (1 << min(record.deaths, 16)), LONGEST)
        return max(record.down + delay - now, timedelta(0))

    def started(self, uid: str, now: datetime) -> None:
        """Note that a dead machine was started again."""
        if (record := self._records.get(uid)) is not None and record.down is not None:
            record.deaths, record.started, record.down = record.deaths + 1, now, None

    def forget(self, uid: str) -> None:
        """Forget a machine that is stopped on purpose or gone."""
        self._records.pop(uid, None)
