"""How often a guest is looked at that has no address yet."""

from dataclasses import replace
from datetime import timedelta

import pytest

from novacron.core.machine import Observed, Power, Resources
from novacron.drivers.libvirt.patience import Patience

SOON = timedelta(seconds=1)
WAITS = Observed("u", "v", Power.ON, Resources(1, 512, 1024), due=SOON)


class Clock:
    """A clock that a test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(("waited", "due"), [(0, 1), (5, 1), (60, 6), (300, 30), (86400, 30)])
def test_the_longer_a_guest_has_no_address_the_longer_until_the_next_look(
    waited: float, due: float
) -> None:
    """Most come within a minute, and some never: hundreds of those would cost a whole CPU."""
    clock = Clock()
    patience = Patience(clock)
    assert patience.paced(WAITS).due == SOON
    clock.now = waited
    assert patience.paced(WAITS).due == timedelta(seconds=due)


def test_a_guest_that_had_one_meanwhile_is_waited_for_anew() -> None:
    """It was started again, or plugged in elsewhere."""
    clock = Clock()
    patience = Patience(clock)
    patience.paced(WAITS)
    clock.now = 300
    patience.paced(replace(WAITS, due=None))
    assert patience.paced(WAITS).due == SOON


def test_progress_is_told_at_the_pace_that_it_has() -> None:
    """Somebody looks at it."""
    clock = Clock()
    patience = Patience(clock)
    patience.paced(WAITS)
    clock.now = 300
    assert patience.paced(replace(WAITS, progress="40 %")).due == SOON


def test_machines_that_are_gone_are_forgotten() -> None:
    """There are many in a year."""
    clock = Clock()
    patience = Patience(clock)
    patience.paced(WAITS)
    clock.now = 300
    patience.forget_all_but(set())
    assert patience.paced(WAITS).due == SOON
