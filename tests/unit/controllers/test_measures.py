"""Which measurements of machines are worth a look."""

from novacron.controllers.measures import TELLING, Measures
from novacron.core.machine import Usage

LITTLE, MUCH = Usage(0.1, 100, 100), Usage(2.0, 900, 100)


def measured(measures: Measures, usage: Usage | None, times: int = 1) -> list[bool]:
    """Measure one machine so many times; say of each whether it was news."""
    return [bool(measures.news({"a": usage}, set())) for _ in range(times)]


def test_a_new_guest_is_told_of_once_it_was_measured_for_a_while() -> None:
    """However much changes meanwhile: it starts."""
    measures = Measures()
    starting = [measured(measures, (LITTLE, MUCH)[time % 2])[0] for time in range(TELLING)]
    assert starting == [False] * (TELLING - 1) + [True]
    assert measured(measures, LITTLE, 2) == [True, False]


def test_what_hardly_changes_is_no_news() -> None:
    """A tenth is."""
    measures = Measures()
    measured(measures, MUCH, TELLING)
    assert measured(measures, Usage(1.9, 890, 100)) == [False]
    assert measured(measures, Usage(1.7, 890, 100)) == [True]


def test_a_guest_that_was_off_begins_anew() -> None:
    """It starts once more."""
    measures = Measures()
    measured(measures, MUCH, TELLING)
    measured(measures, None)
    assert measured(measures, LITTLE, TELLING) == [False] * (TELLING - 1) + [True]


def test_what_is_told_for_another_reason_is_told() -> None:
    """A look at the machine takes its use along."""
    measures = Measures()
    for _ in range(TELLING):
        measures.news({"a": MUCH}, {"a"})
    assert measured(measures, MUCH) == [False]
