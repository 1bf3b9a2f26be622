"""The engine's choices, one reason at a time."""

import pytest

from novacron.core.host import Host, Taint
from novacron.core.machine import Machine, Resources
from novacron.scheduler import HostTable, Nowhere, Placed, choose, fits
from unit.scheduler.hosts import ROOM, SMALL, host, machine, table


def chosen(hosts: HostTable, wanted: Machine) -> str | None:
    decision = choose(hosts, wanted)
    return decision.host if isinstance(decision, Placed) else None


def test_a_machine_goes_where_most_is_free() -> None:
    """Load spreads, and a lost host takes few machines along."""
    hosts = table(host("a"), host("b"))
    hosts.take("uid-0", "a", SMALL)
    assert chosen(hosts, machine()) == "b"


def test_equal_hosts_are_taken_in_the_order_of_their_names() -> None:
    """The same question gets the same answer, in a test as in a log."""
    assert chosen(table(host("b"), host("c"), host("a")), machine()) == "a"


def test_a_machine_goes_where_cpu_and_memory_run_out_together() -> None:
    """A host without memory for its last CPUs cannot use them."""
    hosts = table(host("cpu", Resources(32, 8192, 1000)), host("even", Resources(16, 16384, 1000)))
    hosts.take("x", "cpu", Resources(4, 6144, 0))
    hosts.take("y", "even", Resources(7, 7168, 0))
    assert chosen(hosts, machine(Resources(1, 1024, 0))) == "even"


def test_among_alike_hosts_the_one_with_fewer_machines_is_taken() -> None:
    """Two small ones weigh as much as a large one but are two neighbours."""
    hosts = table(host("a"), host("b"))
    hosts.take("x", "a", SMALL)
    hosts.take("y", "a", SMALL)
    hosts.take("z", "b", SMALL + SMALL)
    assert chosen(hosts, machine()) == "b"


def test_scores_lie_between_nought_and_one() -> None:
    """They are shown to people, who compare them."""
    decision = choose(table(host("a")), machine(ROOM))
    assert isinstance(decision, Placed)
    assert set(decision.scores) == {"LeastAllocated", "Balanced", "Spread"}
    assert all(0 <= rating <= 1 for rating in (*decision.scores.values(), decision.score))


@pytest.mark.parametrize(
    "bad",
    [
        host("a", ready=False),
        host("a", unschedulable=True),
        host("a", taints=(Taint("gpu", "NoSchedule"),)),
        host("a", taints=(Taint("gpu", "NoExecute", "yes"),)),
        host("a", Resources(1, 16384, 100_000)),
        host("a", Resources(16, 512, 100_000)),
        host("a", Resources(16, 16384, 1000)),
    ],
    ids=lambda bad: str(bad)[10:60],
)
def test_a_host_that_will_not_do_is_not_chosen(bad: Host) -> None:
    """Not even when it is the first by name; alone, it means nowhere."""
    assert chosen(table(bad, host("b", SMALL)), machine()) == "b"
    assert isinstance(choose(table(bad), machine()), Nowhere)


def test_a_taint_that_only_asks_does_not_refuse() -> None:
    """PreferNoSchedule is a wish, not a wall."""
    assert chosen(table(host("a", taints=(Taint("old", "PreferNoSchedule"),))), machine()) == "a"


def test_a_machine_goes_only_where_its_selector_points() -> None:
    """Every label must match, in key and value."""
    hosts = table(
        host("a", labels={"gpu": "true"}),
        host("b", labels={"gpu": "true", "zone": "x"}),
        host("c", labels={"gpu": "false", "zone": "x"}),
    )
    assert chosen(hosts, machine(host_selector={"gpu": "true", "zone": "x"})) == "b"
    assert chosen(hosts, machine(host_selector={"gpu": "maybe"})) is None


def test_a_host_that_refused_the_machine_is_not_asked_again() -> None:
    """The host knew better than the books; names of hosts long gone do no harm."""
    wanted = machine(refused_hosts=frozenset({"a", "gone"}))
    assert chosen(table(host("a"), host("b")), wanted) == "b"


def test_a_machine_that_fits_exactly_fits() -> None:
    """The last CPU of a host is as good as the first."""
    hosts = table(host("a"))
    hosts.take("x", "a", ROOM - SMALL)
    assert chosen(hosts, machine()) == "a"
    assert chosen(hosts, machine(SMALL + Resources(1, 0, 0))) is None


def test_an_absurd_size_fits_nowhere() -> None:
    """Numbers beyond the arrays' are an answer, not a crash."""
    assert chosen(table(host("a")), machine(Resources(2**80, 1, 1))) is None


def test_no_hosts_means_nowhere() -> None:
    """The first machine is often declared before the first host."""
    assert isinstance(choose(HostTable(), machine()), Nowhere)


def test_a_decision_takes_nothing() -> None:
    """It becomes true when the placer has written it down."""
    hosts = table(host("a", SMALL))
    assert chosen(hosts, machine()) == chosen(hosts, machine()) == "a"


@pytest.mark.parametrize(
    ("size", "answer"),
    [
        (SMALL, None),
        (Resources(8, 1024, 10_000), None),
        (Resources(9, 1024, 10_000), "host a lacks CPU (7 more asked, 6 free)"),
        (Resources(2, 99_999, 10_000), "host a lacks memory (98975 MiB more asked, 15360 free)"),
        (Resources(2, 1024, 999_999), "host a lacks disk (989999 MiB more asked, 90000 free)"),
        (Resources(1, 512, 10_000), None),
    ],
)
def test_a_machine_grows_where_it_is_if_the_rest_is_free(
    size: Resources, answer: str | None
) -> None:
    """Its own part is not counted against it."""
    hosts = table(host("a", Resources(8, 16384, 100_000), unschedulable=True))
    hosts.take("uid-1", "a", SMALL)
    assert fits(hosts, "uid-1", "a", size) == answer


def test_a_machine_on_an_overfull_host_may_shrink_but_not_grow() -> None:
    """Giving back is always welcome."""
    hosts = table(host("a", Resources(1, 4096, 100_000)))
    hosts.take("uid-1", "a", SMALL)
    assert fits(hosts, "uid-1", "a", Resources(2, 2048, 10_000)) is None
    assert fits(hosts, "uid-1", "a", Resources(1, 1024, 10_000)) is None
    assert fits(hosts, "uid-1", "a", Resources(3, 1024, 10_000)) == (
        "host a lacks CPU (1 more asked, 0 free)"
    )


def test_nothing_fits_on_a_host_nobody_declared() -> None:
    """Its room is unknown."""
    hosts = HostTable()
    hosts.take("uid-1", "a", SMALL)
    assert fits(hosts, "uid-1", "a", SMALL) == "host a is not declared"


def test_a_machine_from_elsewhere_needs_room_for_all_of_it() -> None:
    """What it holds on another host does not help here."""
    hosts = table(host("a", SMALL), host("b"))
    hosts.take("uid-1", "b", SMALL)
    assert fits(hosts, "uid-1", "a", SMALL) is None
    assert fits(hosts, "uid-1", "a", SMALL + SMALL) == "host a lacks CPU (4 more asked, 2 free)"
