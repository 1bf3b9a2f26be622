"""Labels, names and taints of hosts: which rules keep a machine away and which only advise."""

from dataclasses import replace

import pytest

from novacron.core.affinity import Affinity, HostTerm, PreferredHosts, Requirement, Toleration
from novacron.core.cpu import Cpu
from novacron.core.host import Host, Taint
from novacron.core.machine import Machine
from novacron.core.offer import Offer, OfferKind
from novacron.scheduler import Placed, choose, one_line, rated, refusals
from unit.scheduler.hosts import host, machine, table


def fitting(wanted: Machine, *hosts: Host) -> list[str]:
    return sorted(each.host for each in rated(choose(table(*hosts), wanted)))


def on_hosts(*terms: HostTerm) -> Machine:
    return machine(affinity=Affinity(hosts=terms))


def label(key: str, operator: str, *values: str) -> HostTerm:
    return HostTerm((Requirement(key, operator, values),))


@pytest.mark.parametrize(
    ("term", "names"),
    [
        (label("disk", "In", "ssd", "nvme"), ["fast", "faster"]),
        (label("disk", "NotIn", "ssd"), ["faster", "plain"]),
        (label("disk", "Exists"), ["fast", "faster"]),
        (label("disk", "DoesNotExist"), ["plain"]),
        (label("cores", "Gt", "8"), ["faster"]),
        (label("cores", "Lt", "9"), ["fast"]),
        (HostTerm(names=(Requirement("metadata.name", "In", ("plain", "gone")),)), ["plain"]),
        (HostTerm(names=(Requirement("metadata.name", "NotIn", ("plain",)),)), ["fast", "faster"]),
        (HostTerm(names=(Requirement("metadata.name", "Exists"),)), ["fast", "faster", "plain"]),
        (HostTerm(), []),
    ],
    ids=lambda case: str(case)[:40],
)
def test_a_required_term_means_these_hosts(term: HostTerm, names: list[str]) -> None:
    """As Kubernetes' own operators do; a label that is no number is neither more nor less."""
    hosts = (
        host("fast", labels={"disk": "ssd", "cores": "8"}),
        host("faster", labels={"disk": "nvme", "cores": "16"}),
        host("plain", labels={"cores": "many"}),
    )
    assert fitting(on_hosts(term), *hosts) == names


def test_one_term_is_enough_and_in_a_term_everything_counts() -> None:
    """Terms are alternatives, demands are not."""
    both = HostTerm((Requirement("disk", "In", ("ssd",)), Requirement("zone", "In", ("a",))))
    hosts = (
        host("one", labels={"disk": "ssd", "zone": "a"}),
        host("two", labels={"disk": "ssd", "zone": "b"}),
        host("three", labels={"gpu": "true"}),
    )
    assert fitting(on_hosts(both, label("gpu", "Exists")), *hosts) == ["one", "three"]


def test_masks_of_demands_follow_the_labels() -> None:
    """A mask kept from before a change would send machines to the wrong hosts."""
    hosts = table(host("a", labels={"cores": "4"}), host("b", labels={"cores": "8"}))
    wanted = on_hosts(label("cores", "Gt", "6"))
    assert [each.host for each in rated(choose(hosts, wanted))] == ["b"]
    hosts.upsert(host("a", labels={"cores": "16"}))
    hosts.upsert(host("b"))
    assert [each.host for each in rated(choose(hosts, wanted))] == ["a"]


def test_a_host_that_meets_more_wishes_is_better() -> None:
    """Even when it is fuller."""
    wishes = (
        PreferredHosts(80, label("disk", "In", "ssd")),
        PreferredHosts(20, label("zone", "In", "a")),
    )
    hosts = table(host("a", labels={"zone": "a"}), host("b", labels={"disk": "ssd"}), host("c"))
    hosts.take("x", "b", machine().wanted)
    decision = choose(hosts, machine(affinity=Affinity(better_hosts=wishes)))
    assert isinstance(decision, Placed)
    assert decision.host == "b"
    assert [(each.host, round(each.scores["NodeAffinity"], 2)) for each in rated(decision)] == [
        ("b", 0.8),
        ("a", 0.2),
        ("c", 0.0),
    ]


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration("team", "db"), True),
        (Toleration("team"), True),
        (Toleration(), True),
        (Toleration("team", "web"), False),
        (Toleration("team", ""), False),
        (Toleration("team", effect="NoExecute"), False),
        (Toleration("other"), False),
    ],
)
def test_a_tolerated_taint_keeps_nobody_away(toleration: Toleration, tolerated: bool) -> None:
    """Key, value and effect must match where they are given."""
    tainted = host("a", taints=(Taint("team", "NoSchedule", "db"),))
    assert fitting(machine(tolerations=(toleration,)), tainted) == (["a"] if tolerated else [])


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_every_repelling_taint_must_be_tolerated(effect: str) -> None:
    """One that is left is enough, and it alone is named."""
    tainted = host("a", taints=(Taint("team", "NoSchedule", "db"), Taint("old", effect)))
    decision = choose(table(tainted), machine(tolerations=(Toleration("team"),)))
    assert one_line(decision) == f"0/1 hosts fit: 1 has taint old:{effect}"


def test_a_host_that_asks_machines_to_stay_away_is_the_last_choice() -> None:
    """Emptier or not, the other one is taken, unless the machine does not mind."""
    hosts = table(host("a", taints=(Taint("old", "PreferNoSchedule"),)), host("b"))
    for uid in range(4):
        hosts.take(f"x{uid}", "b", machine().wanted)
    decision = choose(hosts, machine())
    assert isinstance(decision, Placed)
    assert decision.host == "b"
    assert decision.scores["Taints"] == 1
    tolerant = choose(hosts, machine(tolerations=(Toleration("old"),)))
    assert isinstance(tolerant, Placed)
    assert tolerant.host == "a"
    assert "Taints" not in tolerant.scores


def test_a_machine_that_may_move_goes_where_it_can_go_on_from() -> None:
    """A newer CPU takes over from an older one, not the other way round."""
    old, new = Cpu("old", frozenset({"sse"})), Cpu("new", frozenset({"sse", "avx"}))
    hosts = (host("a", cpu=new), host("b", cpu=old), host("c", cpu=old), host("d"))
    decision = choose(table(*hosts), machine())
    assert isinstance(decision, Placed)
    assert decision.host == "b"
    assert {each.host: each.scores["Onward"] for each in rated(decision)} == {
        "a": 0.0,
        "b": 1.0,
        "c": 1.0,
        "d": 0.0,
    }
    stays = choose(table(*hosts), machine(live_migration_allowed=False))
    assert isinstance(stays, Placed)
    assert "Onward" not in stays.scores


def test_a_machine_that_goes_on_running_goes_only_where_its_cpu_is() -> None:
    """One that was stopped for it goes anywhere; a host whose CPU nobody knows is not refused."""
    old, new = Cpu("old", frozenset({"sse"})), Cpu("new", frozenset({"sse", "avx", "aes"}))
    hosts = (host("a", cpu=new), host("b", cpu=old), host("c", cpu=new), host("d"))
    runs = machine(leaving="a", keeps_cpu=True, live_migration_allowed=False)
    assert fitting(runs, *hosts) == ["c", "d"]
    assert fitting(replace(runs, keeps_cpu=False), *hosts) == ["b", "c", "d"]
    only = choose(table(*hosts), replace(runs, only_host="b"))
    assert "1 lacks aes, avx of the CPU that it runs with (new)" in one_line(only)


def test_the_cpu_counts_that_a_machine_was_started_with() -> None:
    """It came from a host that had less, and can go back there; a word nobody knows is ignored."""
    old, new = Cpu("old", frozenset({"sse"})), Cpu("new", frozenset({"sse", "avx"}))
    hosts = (host("a", cpu=new), host("b", cpu=old), host("c", cpu=new))
    came = machine(leaving="a", keeps_cpu=True, guest_cpu=old.key)
    assert fitting(came, *hosts) == ["b", "c"]
    assert fitting(replace(came, guest_cpu=new.key), *hosts) == ["c"]
    assert fitting(replace(came, guest_cpu="other-12345678"), *hosts) == ["c"]


def test_without_features_only_the_same_cpu_will_do() -> None:
    """As it is with hosts that do not tell them."""
    hosts = (host("a", cpu=Cpu("old")), host("b", cpu=Cpu("new", accelerator="KVM")))
    runs = machine(leaving="a", keeps_cpu=True, only_host="b")
    said = one_line(choose(table(*hosts), runs))
    assert "1 has another CPU (new KVM) than it runs with (old)" in said


def test_guests_do_not_go_from_an_emulated_cpu_to_a_real_one() -> None:
    """Nor where features are unknown to another model."""
    real, emulated = Cpu("epyc", accelerator="KVM"), Cpu("epyc", accelerator="TCG")
    assert not real.can_take_over(emulated)
    assert real.can_take_over(Cpu("epyc", accelerator="KVM"))
    assert not real.can_take_over(Cpu("xeon", accelerator="KVM"))


def test_a_machine_goes_only_where_what_it_needs_is_offered() -> None:
    """A host that cannot tell is not refused: its driver will."""
    snapshots = Offer(OfferKind.CAPABILITY, "Snapshots")
    fast = Offer(OfferKind.STORAGE, "fast")
    office = Offer(OfferKind.NETWORK, "office")
    wanted = machine(needs=frozenset({snapshots, fast, office}))
    hosts = table(
        host("a", offers=frozenset({snapshots, fast, office})),
        host("b", offers=frozenset({fast, office})),
        host("c", offers=frozenset({snapshots, office})),
        host("d", offers=frozenset({snapshots, fast})),
        host("e", offers=frozenset({snapshots.any, fast.any, office.any})),
    )
    decision = choose(hosts, wanted)
    assert sorted(each.host for each in rated(decision)) == ["a", "e"]
    assert [(each.filter, each.sentence) for each in refusals(decision)] == [
        ("Capability", "host b cannot do Snapshots"),
        ("Storage", "host c has no storage class fast in storageClasses of the Host"),
        ("Network", "host d has no network office"),
    ]


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (on_hosts(label("disk", "In", "ssd")), "(needs disk=ssd, has disk=hdd)"),
        (on_hosts(label("disk", "In", "a", "b")), "(needs disk in (a, b), has disk=hdd)"),
        (on_hosts(label("gpu", "Exists")), "(needs gpu, has no gpu)"),
        (on_hosts(label("disk", "DoesNotExist")), "(needs no disk, has disk=hdd)"),
        (on_hosts(label("cores", "Gt", "8")), "(needs cores > 8, has cores=4)"),
        (
            on_hosts(HostTerm(names=(Requirement("metadata.name", "In", ("z",)),))),
            "(needs metadata.name=z, has metadata.name=a)",
        ),
        (
            on_hosts(label("disk", "In", "ssd"), label("gpu", "Exists")),
            "(needs disk=ssd, or gpu)",
        ),
        (on_hosts(HostTerm()), "(needs nothing that exists)"),
    ],
)
def test_the_words_say_what_was_needed_and_what_was_there(wanted: Machine, words: str) -> None:
    """Whoever reads it must know what to change."""
    decision = choose(table(host("a", labels={"disk": "hdd", "cores": "4"})), wanted)
    assert refusals(decision)[0].sentence == f"host a does not meet nodeAffinity {words}"
