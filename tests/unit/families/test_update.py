"""What an update strategy allows."""

import pytest

from novacron.families.update import restart_allowed


@pytest.mark.parametrize("none", [0, "0%", "00%", "000%"])
def test_whoever_lets_no_machine_be_away_has_none_restarted(none: int | str) -> None:
    """However many digits the nought has that the definition lets through."""
    assert not restart_allowed({"rollingUpdate": {"maxUnavailable": none}})


@pytest.mark.parametrize("some", [1, 10, "1%", "010%", "100%"])
def test_whoever_lets_some_be_away_has_restarts(some: int | str) -> None:
    """A nought among other digits is not nothing."""
    assert restart_allowed({"rollingUpdate": {"maxUnavailable": some}})


@pytest.mark.parametrize("strategy", [{}, {"type": "Recreate"}, {"rollingUpdate": {}}])
def test_whoever_says_nothing_about_it_has_restarts(strategy: dict[str, object]) -> None:
    """One machine at once is the usual."""
    assert restart_allowed(strategy)
