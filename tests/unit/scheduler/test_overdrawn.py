"""Whether a host was promised more than it has, for those who are to come to it."""

import pytest

from novacron.core.host import Host, StorageRoom
from novacron.core.machine import Resources
from novacron.core.resources import Share
from novacron.scheduler import overdrawn
from unit.scheduler.hosts import ROOM, SMALL, host, table

FAST = StorageRoom("fast", 600)
WITH_FAST = SMALL + Resources(shares=(Share("fast", "mine.data", 100),))
OTHER_FAST = Resources(shares=(Share("fast", "theirs.data", 501),))


@pytest.mark.parametrize(
    ("others", "less"),
    [
        (ROOM - SMALL, None),
        (ROOM - Resources(1, 1024, 10_000), "CPU"),
        (ROOM - Resources(2, 1023, 10_000), "memory"),
        (ROOM - Resources(2, 1024, 9_999), "disk"),
        (OTHER_FAST, "storage of class fast"),
    ],
)
def test_of_what_was_promised_more_than_there_is_nobody_is_to_begin(
    others: Resources, less: str | None
) -> None:
    """Whoever of them was promised it wrongly, or no more."""
    hosts = table(host("a", storage=(FAST,)))
    hosts.take("mine", "a", WITH_FAST)
    hosts.take("theirs", "a", others)
    said = less and f"host a has less {less} than was promised of it"
    assert overdrawn(hosts, "mine") == said


def test_a_device_that_was_promised_twice_is_nobodys() -> None:
    """Two guests would have it."""
    hosts = table(host("a"))
    hosts.take("mine", "a", SMALL, devices=("0000:3b:00.0",))
    hosts.take("theirs", "a", SMALL, devices=("0000:5e:00.0",))
    assert overdrawn(hosts, "mine") is None
    hosts.take("theirs", "a", SMALL, devices=("0000:3b:00.0", "0000:5e:00.0"))
    assert overdrawn(hosts, "mine") == "device 0000:3b:00.0 of host a was promised twice"


def test_who_takes_nothing_of_what_ran_out_may_begin() -> None:
    """It makes nothing worse."""
    hosts = table(host("a"))
    hosts.take("mine", "a", Resources(1, 512, 0))
    hosts.take("theirs", "a", Resources(1, 512, ROOM.disk_mib + 1))
    assert overdrawn(hosts, "mine") is None
    assert overdrawn(hosts, "theirs") is not None


@pytest.mark.parametrize("hosts", [(), (host("a", Resources(), ready=False),)])
def test_of_a_host_of_which_nothing_is_known_nothing_is_said(hosts: tuple[Host, ...]) -> None:
    """It cannot be asked for anything either."""
    known = table(*hosts)
    known.take("mine", "a", SMALL)
    assert overdrawn(known, "mine") is None
    assert overdrawn(known, "nobody") is None
