"""How far a move is may wait to be written down; everything else about it may not."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from novacron.controllers.pace import AGAIN, Pace
from novacron.core.move import MoveProgress, MoveReport, MoveResult

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
SOON, LATER = NOON + AGAIN / 2, NOON + AGAIN
HALF = MoveReport(source="a", target="b", started=NOON, progress=MoveProgress(50))
FURTHER = replace(HALF, progress=MoveProgress(60))


def told_at_noon() -> Pace:
    """Return the pace of a machine whose move was written down at noon."""
    pace = Pace()
    pace.written("vm", NOON)
    return pace


def test_a_little_further_waits_until_a_second_has_passed() -> None:
    """Then it is told, however often somebody looked meanwhile."""
    pace = told_at_noon()
    assert pace.may_wait("vm", HALF, FURTHER, SOON)
    assert not pace.may_wait("vm", HALF, FURTHER, LATER)


def test_the_first_word_and_the_last_never_wait() -> None:
    """Somebody waits for them."""
    assert not Pace().may_wait("vm", None, HALF, NOON)
    assert not told_at_noon().may_wait("vm", None, HALF, SOON)
    over = replace(FURTHER, result=MoveResult.SUCCEEDED, ended=SOON)
    assert not told_at_noon().may_wait("vm", HALF, over, SOON)


def test_each_machine_has_a_pace_of_its_own() -> None:
    """What was told of one says nothing of another."""
    assert not told_at_noon().may_wait("other", HALF, FURTHER, SOON)


def test_a_machine_that_does_not_move_is_forgotten() -> None:
    """Its next move is told at once."""
    pace = told_at_noon()
    assert not pace.may_wait("vm", HALF, None, SOON)
    assert not pace.may_wait("vm", HALF, FURTHER, SOON + timedelta(milliseconds=1))
