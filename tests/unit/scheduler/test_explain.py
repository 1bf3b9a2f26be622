"""Explanations: one line that fits a condition, and a reason for every single host."""

from novacron.core.host import Host, Taint
from novacron.core.machine import Machine, Resources
from novacron.scheduler import HostTable, Refusal, choose, one_line, refusals
from unit.scheduler.hosts import host, machine, table

TAINT = Taint("team", "NoSchedule", "db")


def line(wanted: Machine, *hosts: Host) -> str:
    return one_line(choose(table(*hosts), wanted))


def test_the_line_counts_hosts_by_reason_the_most_frequent_first() -> None:
    """What a user reads in the condition of a machine that waits."""
    hosts = (
        host("a", Resources(2, 9999, 99_999), labels={"gpu": "true"}),
        host("b", Resources(1, 9999, 99_999), labels={"gpu": "true"}),
        host("c", Resources(3, 9999, 99_999), labels={"gpu": "true"}),
        host("d", unschedulable=True),
        host("e"),
        host("f"),
    )
    assert line(machine(Resources(4, 1, 1), host_selector={"gpu": "true"}), *hosts) == (
        "0/6 hosts fit: 3 lack CPU (4 asked, 3 free at most), 2 lack label gpu=true, 1 is cordoned"
    )


def test_every_reason_has_its_words_for_one_host() -> None:
    """Grammar is part of a clear sentence."""
    wanted = machine(
        Resources(4, 4096, 4096),
        host_selector={"gpu": "true"},
        refused_hosts=frozenset({"c"}),
    )
    gpu, room = {"gpu": "true"}, Resources(8, 8192, 8192)
    hosts = table(
        host("a", room, ready=False, why_not_ready="the driver does not answer"),
        host("b", room, unschedulable=True),
        host("c", room),
        host("d", room, labels={"gpu": "false"}),
        host("e", room, labels=gpu, taints=(TAINT, Taint("old", "PreferNoSchedule"))),
        host("f", Resources(2, 8192, 8192), labels=gpu),
        host("g", Resources(8, 1024, 8192), labels=gpu),
        host("h", Resources(8, 8192, 0), labels=gpu),
        host("i", room, ready=False),
    )
    assert [(told.filter, told.sentence) for told in refusals(choose(hosts, wanted))] == [
        ("Ready", "host a is not ready (the driver does not answer)"),
        ("Schedulable", "host b is cordoned"),
        ("NotRefused", "host c refused it before"),
        ("Selector", "host d lacks label gpu=true"),
        ("Taints", "host e has taint team=db:NoSchedule"),
        ("CPU", "host f lacks CPU (4 asked, 2 free)"),
        ("Memory", "host g lacks memory (4096 MiB asked, 1024 free)"),
        ("Disk", "host h lacks disk (4096 MiB asked, 0 free)"),
        ("Ready", "host i is not ready"),
    ]


def test_every_reason_has_its_words_for_many_hosts() -> None:
    """Two of each, as the line has them."""
    marks = (
        ({"ready": False, "why_not_ready": "no answer"}, "2 are not ready (no answer)"),
        ({"ready": False}, "2 are not ready"),
        ({"unschedulable": True}, "2 are cordoned"),
        ({"taints": (TAINT,)}, "2 have taint team=db:NoSchedule"),
        ({"allocatable": Resources(8, 1, 0)}, "2 lack memory (1024 MiB asked, 1 free at most)"),
        ({"allocatable": Resources(8, 8192, 7)}, "2 lack disk (10000 MiB asked, 7 free at most)"),
    )
    for mark, words in marks:
        assert line(machine(), host("a", **mark), host("b", **mark)) == f"0/2 hosts fit: {words}"


def test_several_missing_labels_are_named() -> None:
    """Whoever reads it must know which labels to add."""
    wanted = machine(host_selector={"gpu": "true", "zone": "x"})
    assert line(wanted, host("a", labels={"zone": "x"}), host("b")) == (
        "0/2 hosts fit: 2 lack labels gpu=true, zone=x"
    )


def test_the_line_stays_short_however_many_reasons_there_are() -> None:
    """A condition's message is read by people and stored for every machine that waits."""
    hosts = [host(f"host-{n}", taints=(Taint(f"t{n}", "NoSchedule"),)) for n in range(500)]
    assert line(machine(), *hosts) == (
        "0/500 hosts fit: 500 have taints t0:NoSchedule, t100:NoSchedule, t101:NoSchedule, 497 more"
    )


def test_an_overfull_host_has_nothing_free() -> None:
    """Less than nothing is not a number for people."""
    hosts = table(host("a", Resources(1, 9999, 99_999)))
    hosts.take("x", "a", Resources(5, 1, 1))
    assert one_line(choose(hosts, machine())) == "0/1 hosts fit: 1 lacks CPU (2 asked, 0 free)"


def test_no_host_at_all_is_said_plainly() -> None:
    """The remedy is another one than for full hosts."""
    assert one_line(choose(HostTable(), machine())) == "no host is declared"


def test_a_placement_is_explained_too() -> None:
    """With the hosts it was not, and why."""
    decision = choose(table(host("a"), host("b", unschedulable=True)), machine())
    assert one_line(decision) == (
        "1/2 hosts fit: a is best with 0.92 (LeastAllocated 0.90, Balanced 0.94, Spread 1.00)"
    )
    assert refusals(decision) == (Refusal("b", "Schedulable", "host b is cordoned"),)


def test_an_explanation_tells_of_the_moment_of_the_decision() -> None:
    """It may be read after other machines were placed and hosts have changed."""
    hosts = table(host("a", Resources(1, 9999, 99_999)))
    decision = choose(hosts, machine())
    before = one_line(decision), refusals(decision)
    hosts.upsert(host("a"))
    hosts.upsert(host("b"))
    hosts.take("x", "a", Resources(1, 1, 1))
    hosts.remove("b")
    assert (one_line(decision), refusals(decision)) == before
