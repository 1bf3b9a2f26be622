"""What a VirtualMachine says about snapshots, and what is written back."""

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from novacron.core.hooks import NO_HOOKS
from novacron.core.needs import needs_of
from novacron.core.offer import Offer, OfferKind
from novacron.core.schedule import Schedule
from novacron.core.snapshot import (
    NO_WISHES,
    Kept,
    Restored,
    RestoreOrder,
    SnapshotOrder,
    SnapshotReport,
)
from novacron.families.novacron.types import VirtualMachineStatus
from novacron.families.snapshot_record import wishes_of, written_snapshots

Object = dict[str, Any]

SPEC: Object = {
    "snapshotPolicy": {"schedule": "0 2 * * *", "timeZone": "Europe/Vienna", "onDelete": "Protect"},
    "snapshots": [{"name": "a", "memory": True}, {"name": "b", "discard": True}, {"name": "c"}],
    "restore": {"snapshot": "a", "request": "r1"},
}
moments = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)).map(  # noqa: DTZ001
    lambda moment: moment.replace(microsecond=0, tzinfo=UTC)
)
names = st.text("abc", min_size=1, max_size=4)
kept = st.builds(
    Kept, names, moments, st.none() | st.just("1Mi"), st.booleans(), st.booleans(), st.booleans()
)
restored = st.builds(Restored, names, names, st.booleans(), st.just("done"), moments, names)
reports = st.builds(
    SnapshotReport,
    kept=st.lists(kept, max_size=4).map(tuple),
    restored=st.none() | restored,
    followed=st.just("@daily UTC"),
    since=moments,
    next_run=st.none() | moments,
)


def test_a_machine_that_says_nothing_of_them_has_no_wishes() -> None:
    """All such machines share one value."""
    assert wishes_of({"running": True, "snapshots": []}, {"phase": "Running"}) is NO_WISHES


def test_policy_requests_and_restore_are_read() -> None:
    """What is to be discarded is apart from what is to be taken."""
    wishes = wishes_of(SPEC, {})
    assert wishes.policy is not None
    assert wishes.policy.schedule == Schedule("0 2 * * *", "Europe/Vienna")
    assert wishes.policy.retention == 7
    assert wishes.wanted == (SnapshotOrder("a", memory=True), SnapshotOrder("c"))
    assert wishes.unwanted == {"b"}
    assert wishes.to_restore == RestoreOrder("a", "r1")
    assert wishes.protect


def test_snapshots_on_demand_are_protected_without_a_schedule() -> None:
    """The API server has filled in what was left out; none of it asks for a snapshot."""
    policy = {"onDelete": "Protect", "retention": 7, "memory": False}
    wishes = wishes_of({"snapshotPolicy": policy}, {"snapshots": [{"name": "one"}]})
    assert wishes.protect
    assert wishes.policy is None
    assert needs_of((), NO_HOOKS, wishes) == frozenset()


def test_who_is_to_have_snapshots_goes_where_there_can_be_some() -> None:
    """Whoever only had some once may be anywhere."""
    needed = {Offer(OfferKind.CAPABILITY, "Snapshots")}
    assert needs_of((), NO_HOOKS, wishes_of(SPEC, {})) == needed
    discarded = {"snapshots": [{"name": "b", "discard": True}]}
    assert needs_of((), NO_HOOKS, wishes_of(discarded, {})) == frozenset()


@given(reports)
def test_what_is_on_record_is_read_back_as_it_was_written(report: SnapshotReport) -> None:
    """And the schema takes it."""
    status = {name: each for name, each in written_snapshots(report).items() if each is not None}
    VirtualMachineStatus.model_validate(status)
    wishes = wishes_of(SPEC, status)
    assert wishes.kept == report.kept
    assert wishes.restored == report.restored
    assert (wishes.followed, wishes.since, wishes.next_run) == (
        report.followed,
        report.since,
        report.next_run,
    )
