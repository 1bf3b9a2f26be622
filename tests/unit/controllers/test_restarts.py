"""Guests that die are started again, later each time, and forgiven in the end."""

from datetime import UTC, datetime, timedelta

from novacron.controllers.restarts import LONGEST, STEADY, Restarts

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def die(restarts: Restarts, now: datetime) -> timedelta:
    """Let a guest die and be started again as soon as it may."""
    pause = restarts.pause("a", now)
    assert restarts.pause("a", now + pause) == timedelta(0)
    restarts.started("a", now + pause)
    return pause


def test_each_pause_is_twice_as_long_up_to_a_limit() -> None:
    """One that keeps dying must not keep everybody busy."""
    restarts, now = Restarts(), NOON
    pauses = [die(restarts, now := now + timedelta(hours=0, seconds=30)) for _ in range(12)]
    assert pauses[:4] == [SECOND, 2 * SECOND, 4 * SECOND, 8 * SECOND]
    assert pauses[-1] == LONGEST


def test_the_pause_runs_from_the_death_however_often_it_is_looked_at() -> None:
    """Looking must not put it off."""
    restarts = Restarts()
    die(restarts, NOON)
    die(restarts, NOON + 10 * SECOND)
    assert restarts.pause("a", NOON + 20 * SECOND) == 4 * SECOND
    assert restarts.pause("a", NOON + 23 * SECOND) == SECOND


def test_one_that_ran_for_long_begins_anew() -> None:
    """What it died of this time is something else."""
    restarts = Restarts()
    for number in range(5):
        die(restarts, NOON + number * 20 * SECOND)
    assert restarts.pause("a", NOON + timedelta(hours=1) + STEADY) == SECOND


def test_one_that_was_stopped_on_purpose_begins_anew() -> None:
    """Its owner took over."""
    restarts = Restarts()
    for number in range(5):
        die(restarts, NOON + number * 20 * SECOND)
    restarts.forget("a")
    assert restarts.pause("a", NOON + timedelta(minutes=3)) == SECOND
