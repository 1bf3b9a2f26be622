"""When something that repeats is due: cron expressions in a time zone, missed runs, and spreading.

Pure: the time is always given. Every run is known by its moment in UTC, so that the hour which
comes twice in autumn has two names, and nobody does one run twice.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

__all__ = ["Due", "Schedule", "due"]

MINUTE = timedelta(minutes=1)
# Machines of one schedule begin over a tenth of the time between two runs, and no longer than this.
SPREAD_SHARE = 10
LONGEST_SPREAD = timedelta(minutes=10)
BY_NAME = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


@dataclass(frozen=True, slots=True)
class Schedule:
    """A cron expression in a time zone."""

    cron: str
    zone: str = "UTC"

    def __str__(self) -> str:
        return f"{self.cron} {self.zone}"

    def check(self) -> None:
        """Raise ValueError, with a sentence for a user, if it never comes or is none."""
        if self.next(datetime(2000, 1, 1, tzinfo=UTC)) is None:
            raise ValueError(f"schedule {self.cron!r} never comes")

    def next(self, now: datetime) -> datetime | None:
        """Return the first run after a moment."""
        return _first(self._runs(now))

    def latest(self, now: datetime) -> datetime | None:
        """Return the last run at or before a moment."""
        start = now.replace(second=0, microsecond=0) + MINUTE
        # Past the change of clocks there may be runs that count from both sides: look closely.
        back = _first(self._runs(start, reverse=True))
        if back is None:
            return None
        while (later := self.next(back)) is not None and later <= now:
            back = later
        return back

    def _runs(self, now: datetime, *, reverse: bool = False) -> Iterator[datetime]:
        zone = _zone(self.zone)
        try:
            runs = CronSim(BY_NAME.get(self.cron, self.cron), now.astimezone(zone), reverse=reverse)
        except CronSimError as error:
            raise ValueError(f"schedule {self.cron!r} is no cron schedule: {error}") from error
        return (run.astimezone(UTC) for run in runs)


def _first(runs: Iterator[datetime]) -> datetime | None:
    return next(runs, None)


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(
            f"time zone {name!r} is not known; write one such as Europe/Vienna or UTC"
        ) from None


@dataclass(frozen=True, slots=True)
class Due:
    """The run to make now, if there is one, and when to look again."""

    run: datetime | None
    again: datetime | None


def due(schedule: Schedule, uid: str, since: datetime, now: datetime) -> Due:
    """Say which run is to be made: the last one after ``since``, however many were missed.

    Each machine begins a little later than the clock says, always by the same share.
    """
    run = schedule.latest(now)
    following = schedule.next(now)
    if run is None or run <= since:
        return Due(None, _begun(following, schedule, uid))
    begins = _begun(run, schedule, uid)
    assert begins is not None
    if now < begins:
        return Due(None, begins)
    return Due(run, _begun(following, schedule, uid))


def _begun(run: datetime | None, schedule: Schedule, uid: str) -> datetime | None:
    if run is None:
        return None
    following = schedule.next(run)
    gap = following - run if following else LONGEST_SPREAD
    return run + min(gap / SPREAD_SHARE, LONGEST_SPREAD) * _share(uid)


def _share(uid: str) -> float:
    """Return a number from 0 to below 1 that is a machine's own."""
    return int.from_bytes(hashlib.sha256(uid.encode()).digest()[:6]) / 2**48
