"""The table counts every machine once, whatever it is told in whatever order."""

from novacron.core.machine import Resources
from novacron.scheduler import Held, HostTable, Placed, choose
from unit.scheduler.hosts import ROOM, SMALL, free, host, machine, table


def test_what_a_machine_takes_is_not_free() -> None:
    """And what it gives back is."""
    hosts = table(host("a"))
    hosts.take("uid-1", "a", SMALL)
    assert free(hosts, "a") == ROOM - SMALL
    hosts.release("uid-1")
    assert free(hosts, "a") == ROOM


def test_a_machine_counts_once_however_often_it_is_told() -> None:
    """Watches repeat themselves."""
    hosts = table(host("a"))
    for _ in range(3):
        hosts.take("uid-1", "a", SMALL)
    assert free(hosts, "a") == ROOM - SMALL
    assert hosts.machines[hosts.row("a")] == 1


def test_a_machine_that_takes_another_amount_has_changed() -> None:
    """The new amount replaces the old one."""
    hosts = table(host("a"))
    hosts.take("uid-1", "a", SMALL)
    hosts.take("uid-1", "a", SMALL + SMALL)
    assert free(hosts, "a") == ROOM - SMALL - SMALL
    assert hosts.machines[hosts.row("a")] == 1


def test_a_machine_that_moved_is_only_where_it_is_now() -> None:
    """Counted on both hosts, it would fill the cluster with ghosts."""
    hosts = table(host("a"), host("b"))
    hosts.take("uid-1", "a", SMALL)
    hosts.take("uid-1", "b", SMALL)
    assert (free(hosts, "a"), free(hosts, "b")) == (ROOM, ROOM - SMALL)
    assert hosts.held("uid-1") == Held("b", SMALL)


def test_releasing_an_unknown_machine_changes_nothing() -> None:
    """A machine may be deleted before it was ever placed."""
    hosts = table(host("a"))
    hosts.release("nobody")
    assert free(hosts, "a") == ROOM
    assert hosts.held("nobody") is None


def test_machines_count_on_a_host_that_is_declared_later() -> None:
    """After a restart machines are often heard of before their hosts."""
    hosts = HostTable()
    hosts.take("uid-1", "a", SMALL)
    assert hosts.row("a") is None
    hosts.upsert(host("a"))
    assert free(hosts, "a") == ROOM - SMALL


def test_machines_still_count_when_their_host_comes_back() -> None:
    """Removing a Host object does not stop what runs there."""
    hosts = table(host("a"), host("b"))
    hosts.take("uid-1", "a", SMALL)
    hosts.remove("a")
    assert hosts.row("a") is None
    decision = choose(hosts, machine())
    assert isinstance(decision, Placed)
    assert decision.host == "b"
    hosts.upsert(host("a"))
    assert free(hosts, "a") == ROOM - SMALL


def test_a_host_declared_anew_keeps_its_machines() -> None:
    """More memory was put in; the machines did not go away for that."""
    hosts = table(host("a"))
    hosts.take("uid-1", "a", SMALL)
    hosts.upsert(host("a", ROOM + ROOM))
    assert free(hosts, "a") == ROOM + ROOM - SMALL


def test_a_host_made_smaller_than_what_it_carries_has_less_than_nothing() -> None:
    """It must not look free; it is full until enough has left."""
    hosts = table(host("a"))
    hosts.take("uid-1", "a", Resources(8, 0, 0))
    hosts.upsert(host("a", Resources(4, 1024, 1024)))
    assert free(hosts, "a") == Resources(-4, 1024, 1024)


def test_removing_an_unknown_host_changes_nothing() -> None:
    """Also one that is only known by its machines: they stay counted."""
    hosts = HostTable()
    hosts.take("uid-1", "a", SMALL)
    hosts.remove("a")
    hosts.remove("b")
    hosts.upsert(host("a"))
    assert free(hosts, "a") == ROOM - SMALL


def test_hosts_that_come_and_go_leave_no_rows() -> None:
    """A cluster that scales up and down for a year must not grow the table."""
    hosts = HostTable()
    for number in range(1000):
        hosts.upsert(host(f"host-{number}", labels={"number": str(number)}))
        hosts.take("uid-1", f"host-{number}", SMALL)
        hosts.release("uid-1")
        hosts.remove(f"host-{number}")
    assert hosts.size == HostTable().size
    assert hosts.vacant.all()


def test_the_table_grows_and_keeps_everything() -> None:
    """Rows are added in blocks; what is in the old ones stays."""
    hosts = HostTable()
    for number in range(300):
        hosts.take(f"uid-{number}", f"host-{number}", Resources(number % 7, 0, 0))
        hosts.upsert(host(f"host-{number}", labels={"odd": str(number % 2)}))
        hosts.lacking({"odd": "1"})
    assert all(
        free(hosts, f"host-{number}") == ROOM - Resources(number % 7, 0, 0) for number in range(300)
    )
    assert int((~hosts.lacking({"odd": "1"})).sum()) == 150


def test_labels_follow_their_hosts() -> None:
    """A mask kept from before a change would send machines to the wrong hosts."""
    hosts = table(host("a", labels={"disk": "ssd"}), host("b"))
    for labels, lacking in (({"disk": "ssd"}, 0), ({"disk": "hdd"}, 1), ({}, 1)):
        hosts.upsert(host("a", labels=labels))
        assert hosts.lacking({"disk": "ssd"})[hosts.row("a")] == bool(lacking)
    assert hosts.lacking({"disk": "ssd"}).all()


def test_selectors_that_are_all_different_are_not_all_remembered() -> None:
    """One selector per host must not cost one mask per host for ever."""
    hosts = table(*(host(f"host-{n}", labels={"name": f"host-{n}"}) for n in range(600)))
    for number in range(600):
        lacking = hosts.lacking({"name": f"host-{number}"})
        assert not lacking[hosts.row(f"host-{number}")]
        assert int((~lacking).sum()) == 1
