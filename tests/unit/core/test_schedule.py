"""At which moments schedules are due where clocks are not UTC's, and where they are changed."""

from datetime import UTC, datetime, timedelta

import pytest

from novacron.core.schedule import Schedule, due

VIENNA, NEW_YORK = "Europe/Vienna", "America/New_York"
# The nights of 2026 in which Vienna goes from 02:00 to 03:00 at 01:00 UTC, and back.
SPRING, AUTUMN = "2026-03-28 22:00", "2026-10-24 22:00"

# As cron(8) of Debian says, in UTC: what would have been in a skipped hour is run right after it,
# and what comes in a doubled one is run the first time only. What has a wildcard for its minute or
# its hour goes by the clock alone.
IN_UTC = {
    "summer": ("0 2 * * *", VIENNA, "2026-07-01 12:00", ["07-02 00:00", "07-03 00:00"]),
    "winter": ("0 2 * * *", VIENNA, "2026-01-10 12:00", ["01-11 01:00", "01-12 01:00"]),
    "another day than that of UTC": ("@daily", VIENNA, "2026-07-01 12:00", ["07-01 22:00"]),
    "a day of its own week": ("0 1 * * 0", VIENNA, "2026-01-10 12:00", ["01-11 00:00"]),
    "west": ("0 2 * * *", NEW_YORK, "2026-07-10 12:00", ["07-11 06:00", "07-12 06:00"]),
    "west in winter": ("0 22 * * *", NEW_YORK, "2026-01-10 12:00", ["01-11 03:00"]),
    "skipped": ("30 2 * * *", VIENNA, SPRING, ["03-29 01:00", "03-30 00:30"]),
    "skipped in the west": ("30 2 * * *", NEW_YORK, "2026-03-08 00:00", ["03-08 07:00"]),
    "two skipped at once": ("15,45 2 * * *", VIENNA, SPRING, ["03-29 01:00", "03-30 00:15"]),
    "a wildcard in a skipped hour": ("*/30 2 * * *", VIENNA, SPRING, ["03-30 00:00"]),
    "hourly past a gap": ("0 * * * *", VIENNA, "2026-03-28 23:30", ["03-29 00:00", "03-29 01:00"]),
    "doubled": ("30 2 * * *", VIENNA, AUTUMN, ["10-25 00:30", "10-26 01:30"]),
    "doubled in the west": (
        *("30 1 * * *", NEW_YORK, "2026-11-01 00:00"),
        ["11-01 05:30", "11-02 06:30"],
    ),
    "after a doubled hour": ("0 3 * * *", VIENNA, AUTUMN, ["10-25 02:00", "10-26 02:00"]),
    "hourly in a doubled one": (
        *("30 * * * *", VIENNA, "2026-10-24 23:45"),
        ["10-25 00:30", "10-25 01:30", "10-25 02:30"],
    ),
}


def at(text: str) -> datetime:
    """Return a moment of 2026 in UTC."""
    return datetime.fromisoformat(text if text.startswith("2026-") else f"2026-{text}").replace(
        tzinfo=UTC
    )


@pytest.mark.parametrize(("cron", "zone", "since", "runs"), IN_UTC.values(), ids=IN_UTC)
def test_a_schedule_is_due_when_the_clocks_of_its_zone_say_so(
    cron: str, zone: str, since: str, runs: list[str]
) -> None:
    """Once in a night whose clocks are changed, neither never nor twice, as Debian's cron has it.

    Properties hold for any zone, also for the wrong one: here are the hours themselves.
    """
    schedule, before = Schedule(cron, zone), at(since)
    for run in map(at, runs):
        assert schedule.next(before) == run
        assert schedule.latest(run) == run
        assert schedule.latest(run + timedelta(minutes=1)) == run
        assert due(schedule, "uid", before, run + timedelta(minutes=10)).run == run
        before = run


def test_a_zone_that_nobody_knows_is_refused_in_words() -> None:
    """Rather than that all is done at the hours of UTC."""
    with pytest.raises(ValueError, match="write one such as Europe/Vienna or UTC"):
        Schedule("0 2 * * *", "Europe/Wien").check()
