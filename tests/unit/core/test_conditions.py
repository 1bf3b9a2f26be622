"""Conditions move only with a change."""

from datetime import UTC, datetime, timedelta

from novacron.core.conditions import Condition, condition_of, merge_conditions
from novacron.core.steps import Blocked, Done, Wait

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
LATER = NOON + timedelta(minutes=5)


def test_the_same_claim_again_moves_no_timestamp() -> None:
    """Otherwise every round would be a write."""
    ready = Condition("Ready", "True", "VMReady", "runs")
    once = merge_conditions((), {"Ready": ready}, NOON)
    assert merge_conditions(once, {"Ready": ready}, LATER) == once


def test_a_new_reason_is_a_new_probe_but_no_transition() -> None:
    """lastTransitionTime tells since when the status is what it is."""
    once = merge_conditions((), {"Ready": Condition("Ready", "False", "Creating")}, NOON)
    (now,) = merge_conditions(once, {"Ready": Condition("Ready", "False", "Starting")}, LATER)
    assert (now.probed, now.since, now.reason) == (LATER, NOON, "Starting")


def test_a_new_status_is_a_transition() -> None:
    """Both timestamps move."""
    once = merge_conditions((), {"Ready": Condition("Ready", "False", "Creating")}, NOON)
    (now,) = merge_conditions(once, {"Ready": Condition("Ready", "True", "VMReady")}, LATER)
    assert (now.probed, now.since) == (LATER, LATER)


def test_conditions_of_others_stay() -> None:
    """Two controllers write the same list; neither may drop what the other said."""
    foreign = Condition("Blessed", "True", "ByBishop", "", NOON, NOON)
    merged = merge_conditions((foreign,), {"Ready": Condition("Ready", "True", "VMReady")}, LATER)
    assert merged[0] == foreign


def test_none_takes_a_condition_away() -> None:
    """Supported is only there while something is not."""
    said = merge_conditions((), {"Placed": Condition("Placed", "False", "No")}, NOON)
    assert merge_conditions(said, {"Placed": None}, LATER) == ()
    assert merge_conditions((), {"Placed": None}, LATER) == ()


def test_outcomes_are_true_unknown_and_false() -> None:
    """Done, waiting, and blocked until somebody changes something."""
    assert condition_of("X", Done("Made", "it is")).status == "True"
    assert condition_of("X", Wait("Busy", timedelta(1), "soon")).status == "Unknown"
    assert condition_of("X", Blocked("Rejected", "never")).status == "False"
