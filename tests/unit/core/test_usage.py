"""Measurements are written when they differ by a tenth, and once a minute at most."""

from datetime import UTC, datetime, timedelta

import pytest

from novacron.core.machine import Usage
from novacron.core.usage import NOW, due_in

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
WRITTEN = Usage(1.0, 1000, 500)


@pytest.mark.parametrize(
    ("measured", "due"),
    [
        (None, None),
        (WRITTEN, None),
        (Usage(1.05, 1000, 500), None),
        (Usage(1.2, 1000, 500), NOW),
        (Usage(1.0, 800, 500), NOW),
        (Usage(1.0, None, 500), NOW),
    ],
)
def test_a_tenth_is_worth_a_write(measured: Usage | None, due: timedelta | None) -> None:
    """Noise is not."""
    assert due_in(WRITTEN, measured, NOON - timedelta(minutes=2), NOON) == due


def test_a_change_within_the_minute_is_written_when_the_minute_is_over() -> None:
    """It is late, not lost."""
    due = due_in(WRITTEN, Usage(3.0, 1000, 500), NOON - timedelta(seconds=20), NOON)
    assert due == timedelta(seconds=40)


def test_the_first_measurement_is_written_at_once() -> None:
    """There is nothing to be patient with."""
    assert due_in(None, WRITTEN, None, NOON) == NOW


def test_nothing_measured_twice_is_nothing() -> None:
    """Zero does not differ from zero."""
    assert due_in(Usage(0.0, 0, 0), Usage(0.0, 0, 0), None, NOON) is None
