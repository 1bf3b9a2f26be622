"""When a container that ended is started again."""

from datetime import timedelta

import pytest

from novacron.localcluster.node.backoff import Backoff, restarts

SHORT = timedelta(seconds=3)


def test_the_first_restart_is_at_once_and_the_others_ever_later():
    """As a kubelet does it: 10 s doubled up to five minutes."""
    backoff = Backoff()
    pauses = [backoff.pause_after(SHORT).total_seconds() for _ in range(9)]
    assert pauses == [0, 10, 20, 40, 80, 160, 300, 300, 300]


def test_a_long_run_is_forgiven():
    """Somebody who crashes once a day is started again at once each time."""
    backoff = Backoff()
    for _ in range(5):
        backoff.pause_after(SHORT)
    assert backoff.pause_after(timedelta(minutes=10)) == timedelta()
    assert backoff.pause_after(SHORT) == timedelta(seconds=10)


@pytest.mark.parametrize(
    ("policy", "code", "again"),
    [
        ("Always", 0, True),
        ("Always", 1, True),
        ("OnFailure", 0, False),
        ("OnFailure", 1, True),
        ("Never", 0, False),
        ("Never", 1, False),
    ],
)
def test_the_restart_policy_decides(policy, code, again):
    """Three words, six cases."""
    assert restarts(policy, code) is again
