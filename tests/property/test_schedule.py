"""Schedules at any time, in any zone: nothing is made twice, nothing is forgotten."""

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from novacron.core.schedule import LONGEST_SPREAD, Schedule, due
from novacron.core.snapshot import is_scheduled, scheduled_name, surplus

ZONES = ("UTC", "Europe/Vienna", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")
CRONS = (
    *("* * * * *", "*/7 * * * *", "0 * * * *", "30 2 * * *", "0 3 * * 0", "15 1,2 * * *"),
    *("@daily", "0 0 1 * *", "59 23 31 12 *", "*/30 1-3 * * *"),
)
schedules = st.builds(Schedule, st.sampled_from(CRONS), st.sampled_from(ZONES))
# Two years, with the changes of clocks of both hemispheres in them.
moments = st.timedeltas(timedelta(0), timedelta(days=730)).map(
    lambda passed: datetime(2025, 1, 1, tzinfo=UTC) + passed
)
# The hours around the changes of clocks, where mistakes are.
changes = st.builds(
    lambda day, minutes: day + timedelta(minutes=minutes),
    st.sampled_from(
        [
            datetime(2026, 3, 29, 1, tzinfo=UTC),
            datetime(2026, 10, 25, 1, tzinfo=UTC),
            datetime(2026, 3, 8, 7, tzinfo=UTC),
            datetime(2026, 11, 1, 6, tzinfo=UTC),
            datetime(2026, 4, 4, 15, tzinfo=UTC),
        ]
    ),
    st.integers(-300, 300),
)
anytime = moments | changes


@given(schedules, anytime)
def test_the_last_run_and_the_next_are_neighbours(schedule: Schedule, now: datetime) -> None:
    """No run lies between them, whichever way the clock was changed."""
    latest, following = schedule.latest(now), schedule.next(now)
    assert following is not None
    assert following > now
    if latest is not None:
        assert latest <= now
        assert schedule.next(latest) == following


@given(schedules, anytime, st.timedeltas(timedelta(0), timedelta(days=40)), st.text(max_size=8))
def test_at_most_one_run_is_due_and_it_is_the_last(
    schedule: Schedule, since: datetime, passed: timedelta, uid: str
) -> None:
    """However long nobody looked; and whoever looks when told to finds one."""
    now = since + passed
    found = due(schedule, uid, since, now)
    assert found.again is not None
    assert found.again > now or found.run is not None
    if found.run is not None:
        assert since < found.run <= now
        assert found.run == schedule.latest(now)
        assert due(schedule, uid, found.run, now).run is None
    else:
        assert due(schedule, uid, since, found.again).run is not None


@given(schedules, anytime, st.text(max_size=8))
def test_a_machine_begins_a_little_late_and_always_by_the_same_share(
    schedule: Schedule, now: datetime, uid: str
) -> None:
    """Never so late that the next run comes before."""
    run = schedule.next(now)
    assert run is not None
    following = schedule.next(run)
    assert following is not None
    begins = due(schedule, uid, now, run - timedelta(seconds=1)).again
    assert begins is not None
    assert run <= begins < run + min((following - run) / 10, LONGEST_SPREAD)
    assert begins == due(schedule, uid, now, run - timedelta(seconds=1)).again


def test_many_machines_are_spread_evenly() -> None:
    """A thousand machines of one schedule, in ten equal parts of the ten minutes."""
    run = datetime(2026, 11, 15, 2, tzinfo=UTC)
    before = run - timedelta(hours=1)
    parts = [0] * 10
    for number in range(1000):
        begins = due(Schedule("0 2 * * *"), f"uid-{number}", before, before).again
        assert begins is not None
        parts[int((begins - run) / timedelta(minutes=1))] += 1
    assert min(parts) > 60


@given(st.lists(moments, unique=True, max_size=30), st.integers(1, 20), st.lists(st.text("ab-")))
def test_only_the_oldest_scheduled_ones_are_too_many(
    runs: list[datetime], retention: int, others: list[str]
) -> None:
    """What somebody took on demand is never counted nor removed."""
    names = list({scheduled_name(run) for run in runs})
    gone = surplus([*others, *names], retention)
    assert len(names) - len(gone) == min(len(names), retention)
    assert all(is_scheduled(name) for name in gone)
    left = set(names) - set(gone)
    assert not left or not gone or max(gone) < min(left)


@settings(max_examples=30)
@given(schedules, anytime, st.lists(st.timedeltas(timedelta(0), timedelta(hours=9)), max_size=40))
def test_every_run_is_made_once_however_the_operator_sleeps(
    schedule: Schedule, start: datetime, sleeps: list[timedelta]
) -> None:
    """Names never repeat, and go forward."""
    since, now, made = start, start, list[str]()
    for sleep in sleeps:
        now += sleep
        if (run := due(schedule, "uid", since, now).run) is not None:
            made.append(scheduled_name(run))
            since = run
    assert made == sorted(set(made))
