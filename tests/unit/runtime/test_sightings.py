"""Who is alive, by one's own clock."""

from datetime import timedelta

import pytest

from novacron.runtime.sightings import Sightings


@pytest.fixture
def sightings() -> Sightings:
    return Sightings(timedelta(seconds=9))


def test_a_silent_member_expires_after_the_duration(sightings: Sightings) -> None:
    """Counted from the end of the look that saw its last sign of life."""
    sightings.record({"a": "1"}, 100.0, 100.5)
    sightings.record({"a": "1"}, 109.4, 109.5)
    assert not sightings.expired("a")
    sightings.record({"a": "1"}, 109.5, 109.6)
    assert sightings.expired("a")


def test_a_slow_look_proves_silence_only_up_to_its_beginning(sightings: Sightings) -> None:
    """The answer may be as old as the question."""
    sightings.record({"a": "1"}, 100.0, 100.0)
    sightings.record({"a": "1"}, 108.0, 112.0)
    assert sightings.silence("a") == timedelta(seconds=8)
    assert not sightings.expired("a")


def test_a_sign_of_life_starts_the_time_again(sightings: Sightings) -> None:
    """Any change of the version is one; what it says is of no interest."""
    sightings.record({"a": "1"}, 100.0, 100.0)
    sightings.record({"a": "2"}, 108.0, 108.0)
    sightings.record({"a": "2"}, 110.0, 110.0)
    assert not sightings.expired("a")


def test_a_holder_whose_lease_is_gone_gets_its_time_too(sightings: Sightings) -> None:
    """Somebody may have deleted the lease of a process that still acts."""
    sightings.record({"a": "1"}, 100.0, 100.0)
    sightings.record({"a": None}, 108.0, 108.0)
    sightings.record({"a": None}, 116.0, 116.0)
    assert sightings.unexpired() == {"a"}
    sightings.record({"a": None}, 117.0, 117.0)
    assert sightings.unexpired() == frozenset()


def test_who_was_never_seen_is_not_expired(sightings: Sightings) -> None:
    """One look proves nothing about time."""
    sightings.record({"a": "1"}, 5000.0, 5000.0)
    assert not sightings.expired("a")
    assert not sightings.expired("unknown")


def test_the_next_expiry_is_the_first_to_come(sightings: Sightings) -> None:
    """By it a process wakes up in time, not up to a retry late."""
    assert sightings.next_expiry() is None
    sightings.record({"a": "1", "b": "1"}, 100.0, 100.0)
    sightings.record({"a": "1", "b": "2"}, 102.0, 102.0)
    assert sightings.next_expiry() == 109.0
    sightings.record({"a": "1", "b": "2"}, 110.0, 110.0)
    assert sightings.next_expiry() == 111.0
