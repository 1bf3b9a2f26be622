"""How far a move is may wait to be written down; everything else about it may not."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from novacron.controllers.pace import AGAIN, DETAILS, Pace
from novacron.controllers.round import Round
from novacron.core.conditions import Condition
from novacron.core.machine import Hindrance, Machine, Observed, Power, Resources
from novacron.core.move import MoveProgress, MoveReport, MoveResult
from novacron.core.steps import Done, Wait

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


STARTING = Round(
    {"Created": Done(), "Powered": Wait("Starting")},
    Observed("vm", "1", Power.OFF, Resources(), changing="start"),
)


def said(reason: str, **changed: object) -> Machine:
    """Return a machine of which was written that it is not Ready for a reason."""
    ready = Condition("Ready", "False", reason, "")
    machine = Machine("vm", "default", "vm", Resources(), "", Power.ON, conditions=(ready,))
    return replace(machine, **changed)  # type: ignore[arg-type]


def test_what_comes_between_the_order_to_start_and_the_start_waits() -> None:
    """A claim that is bound and a node that is chosen are no news for a machine that is up soon."""
    pace = Pace()
    assert pace.details_wait(said("Creating"), STARTING, NOON) is None
    assert pace.details_wait(said("Starting"), STARTING, SOON) == DETAILS - (SOON - NOON)
    assert pace.details_wait(said("Starting"), STARTING, NOON + DETAILS) is None


def test_a_start_that_takes_long_is_told_of_less_and_less_often() -> None:
    """Where hundreds start at once each takes minutes, and all of them are written about."""
    pace = Pace()
    pace.details_wait(said("Starting"), STARTING, NOON)
    moments = [NOON + DETAILS * number for number in range(1, 8)]
    told = [pace.details_wait(said("Starting"), STARTING, each) is None for each in moments]
    assert told == [True, False, True, False, False, False, True]


def test_what_is_in_the_way_of_a_start_never_waits_nor_does_its_end() -> None:
    pace = Pace()
    pace.details_wait(said("Starting"), STARTING, NOON)
    assert STARTING.seen is not None
    held = replace(STARTING.seen, hindered=Hindrance("InsufficientResources", "full"))
    assert pace.details_wait(said("Starting"), replace(STARTING, seen=held), SOON) is None
    up = replace(STARTING, outcomes={"Powered": Done()})
    assert pace.details_wait(said("Starting"), up, SOON) is None


def test_a_new_spec_is_answered_at_once() -> None:
    pace = Pace()
    pace.details_wait(said("Starting"), STARTING, NOON)
    assert pace.details_wait(said("Starting", generation=2), STARTING, SOON) is None
