"""Who leaves a host with a taint of NoExecute, and when: what Kubernetes says of pods."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from novacron.core.affinity import Toleration
from novacron.core.eviction import OUT_OF_SERVICE, evicting, leaves
from novacron.core.taint import Taint

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
SOON = Taint("soon", "NoExecute")
OTHER = Taint("other", "NoExecute", "x")
UNREACHABLE = Taint("node.kubernetes.io/unreachable", "NoExecute")


def after(seconds: int) -> datetime:
    return NOON + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("taints", "tolerations", "now", "answer"),
    [
        ([], [], NOON, None),
        ([Taint("soon", "NoSchedule")], [], NOON, None),
        ([SOON], [], NOON, SOON),
        ([SOON], [Toleration("soon")], after(9999), None),
        ([SOON], [Toleration("soon", effect="NoSchedule")], NOON, SOON),
        ([SOON], [Toleration("soon", seconds=30)], after(10), timedelta(seconds=20)),
        ([SOON], [Toleration("soon", seconds=30)], after(30), SOON),
        ([SOON], [Toleration("soon", seconds=0)], NOON, SOON),
        ([SOON], [Toleration("soon", seconds=30), Toleration("soon")], after(60), SOON),
        ([SOON], [Toleration("soon"), Toleration("soon", seconds=30)], after(60), None),
        ([SOON, OTHER], [Toleration("soon")], NOON, OTHER),
        (
            [SOON, OTHER],
            [Toleration("soon", seconds=60), Toleration("other", "x", seconds=20)],
            NOON,
            timedelta(seconds=20),
        ),
        ([UNREACHABLE], [], after(299), timedelta(seconds=1)),
        ([UNREACHABLE], [], after(300), UNREACHABLE),
        ([UNREACHABLE], [Toleration(UNREACHABLE.key)], after(9999), None),
        ([Taint(OUT_OF_SERVICE, "NoExecute")], [], after(9999), None),
    ],
    ids=str,
)
def test_a_machine_leaves_when_a_pod_would(
    taints: list[Taint],
    tolerations: list[Toleration],
    now: datetime,
    answer: Taint | timedelta | None,
) -> None:
    """At once, after a while, or never."""
    since = dict.fromkeys(taints, NOON)
    assert leaves(taints, tolerations, since, now) == answer


def test_a_taint_that_nobody_noted_yet_is_new() -> None:
    """Then the whole time is left."""
    assert leaves([SOON], [Toleration(seconds=30)], {}, NOON) == timedelta(seconds=30)


keys = st.sampled_from(["a", "b", "c"])
some_taints = st.lists(
    st.builds(Taint, keys, st.sampled_from(["NoExecute", "NoSchedule", "PreferNoSchedule"])),
    max_size=4,
)
some_tolerations = st.lists(
    st.builds(
        Toleration,
        key=st.none() | keys,
        effect=st.none() | st.just("NoExecute"),
        seconds=st.none() | st.integers(-5, 100),
    ),
    max_size=4,
)


@given(some_taints, some_tolerations, st.integers(0, 200), st.integers(0, 200))
def test_who_leaves_is_never_called_back_by_time_alone(
    taints: list[Taint], tolerations: list[Toleration], early: int, later: int
) -> None:
    """The longer a taint is there, the less time is left; what was said to be left is true."""
    since = dict.fromkeys(taints, NOON)
    first = leaves(taints, tolerations, since, after(early))
    second = leaves(taints, tolerations, since, after(early + later))
    if isinstance(first, Taint):
        assert isinstance(second, Taint)
    elif isinstance(first, timedelta):
        passed = timedelta(seconds=later)
        assert isinstance(second, Taint) == (passed >= first)
        assert isinstance(second, Taint) or second == first - passed
    else:
        assert second is None


@given(some_taints, some_tolerations)
def test_a_machine_without_tolerations_leaves_whenever_any_does(
    taints: list[Taint], tolerations: list[Toleration]
) -> None:
    """Tolerations never send anybody away, and only NoExecute does."""
    without = leaves(taints, [], {}, NOON)
    assert isinstance(without, Taint) == bool(evicting(taints))
    if isinstance(leaves(taints, tolerations, {}, NOON), Taint):
        assert isinstance(without, Taint)
