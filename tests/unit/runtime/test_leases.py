"""Lease objects as Kubernetes clients expect them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from novacron.runtime.client import Client
from novacron.runtime.connection import Connection
from novacron.runtime.credentials import Anonymous
from novacron.runtime.leases import ApiLeases, Lease, LeaseTiming, microtime
from novacron.runtime.membership import Membership

NOON = datetime(2026, 1, 2, 12, 0, 0, 5, tzinfo=UTC)
LATER = NOON + timedelta(seconds=30)


def test_moments_have_microseconds_and_are_in_utc() -> None:
    """The API's MicroTime; a moment without them is refused by other clients."""
    assert microtime(NOON) == "2026-01-02T12:00:00.000005Z"
    assert microtime(NOON.astimezone(timezone(timedelta(hours=2)))) == microtime(NOON)


def test_a_lease_changes_hands_as_other_clients_do_it() -> None:
    """Tools show holders, times and transitions of all leases alike."""
    new = Lease.new("x-leader", LeaseTiming()).taken("a", NOON)
    assert new.body["spec"] == {
        "holderIdentity": "a",
        "acquireTime": microtime(NOON),
        "renewTime": microtime(NOON),
        "leaseDurationSeconds": 9,
        "leaseTransitions": 0,
    }
    stored = Lease({**new.body, "metadata": {"name": "x-leader", "resourceVersion": "7"}})
    renewed = stored.renewed(LATER, {})
    assert renewed.body["spec"] == {**new.body["spec"], "renewTime": microtime(LATER)}
    released = renewed.released(LATER)
    assert released.holder == ""
    taken = released.taken("b", LATER)
    assert taken.body["spec"]["leaseTransitions"] == 1
    assert taken.body["spec"]["acquireTime"] == microtime(LATER)
    assert taken.version == "7"


def test_a_duration_is_written_in_whole_seconds_rounded_up() -> None:
    """The API knows no fractions, and zero is refused."""
    timing = LeaseTiming(
        duration=timedelta(milliseconds=300),
        renew_deadline=timedelta(milliseconds=200),
        retry=timedelta(milliseconds=100),
    )
    assert Lease.new("x", timing).body["spec"]["leaseDurationSeconds"] == 1


def test_a_timing_that_lets_two_act_at_once_is_refused() -> None:
    """The deadline of the one has to come before the patience of the others ends."""
    with pytest.raises(ValueError, match="renew deadline < duration"):
        LeaseTiming(renew_deadline=timedelta(seconds=9))
    with pytest.raises(ValueError, match="retry"):
        LeaseTiming(retry=timedelta(0))


async def test_leases_are_not_written_behind_the_fence_they_open() -> None:
    """A process could never join: its first heartbeat would wait for itself."""
    connection = Connection("https://127.0.0.1:1", None, Anonymous())
    fence = Membership(ApiLeases(Client(connection), "default"))
    with pytest.raises(ValueError, match="fence"):
        ApiLeases(Client(connection, fence=fence), "default")
