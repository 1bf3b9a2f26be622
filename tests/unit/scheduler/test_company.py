"""Machines that must be together or apart, and those that would rather be."""

import pytest

from novacron.core.affinity import (
    Affinity,
    MachineTerm,
    Neighbour,
    PreferredMachines,
    Requirement,
    Selector,
)
from novacron.core.machine import Machine, Resources
from novacron.scheduler import HostTable, Placed, choose, one_line, rated, refusals
from unit.scheduler.hosts import SMALL, host, machine, table

DEFAULT = frozenset({"default"})
ZONES = (
    host("a", labels={"zone": "x"}),
    host("b", labels={"zone": "x"}),
    host("c", labels={"zone": "y"}),
    host("d"),
)


def selecting(*labels: str) -> Selector:
    pairs = (label.split("=") for label in labels)
    return Selector(tuple(Requirement(key, "In", (value,)) for key, value in pairs))


def term(*labels: str, topology: str | None = None) -> MachineTerm:
    return MachineTerm(selecting(*labels), topology, DEFAULT)


def put(
    hosts: HostTable, name: str, on: str, affinity: Affinity | None = None, **labels: str
) -> None:
    neighbour = Neighbour("default", labels, affinity)
    hosts.take(name, on, SMALL, neighbour=neighbour)


def fitting(hosts: HostTable, wanted: Machine) -> list[str]:
    return sorted(each.host for each in rated(choose(hosts, wanted)))


def test_apart_means_another_host_unless_a_topology_is_named() -> None:
    """The specification's own rule names none."""
    hosts = table(*ZONES)
    put(hosts, "db", "a", app="db")
    assert fitting(hosts, machine(affinity=Affinity(apart=(term("app=db"),)))) == ["b", "c", "d"]
    zones = machine(affinity=Affinity(apart=(term("app=db", topology="zone"),)))
    assert fitting(hosts, zones) == ["c", "d"]


def test_near_means_the_same_host_or_the_same_topology() -> None:
    """A host without the label is near to nobody."""
    hosts = table(*ZONES)
    put(hosts, "db", "a", app="db")
    assert fitting(hosts, machine(affinity=Affinity(near=(term("app=db"),)))) == ["a"]
    zones = machine(affinity=Affinity(near=(term("app=db", topology="zone"),)))
    assert fitting(hosts, zones) == ["a", "b"]


def test_every_near_term_must_be_met() -> None:
    """Each by whichever machine meets it."""
    hosts = table(*ZONES)
    put(hosts, "db", "a", app="db")
    put(hosts, "cache", "b", app="cache")
    wanted = machine(affinity=Affinity(near=(term("app=db", topology="zone"), term("app=cache"))))
    assert fitting(hosts, wanted) == ["b"]


def test_the_first_of_a_group_may_begin_anywhere_its_topology_is_known() -> None:
    """It would wait for itself for ever; the second one has to go where the first is."""
    hosts = table(*ZONES)
    group = machine(
        labels={"app": "web"}, affinity=Affinity(near=(term("app=web", topology="zone"),))
    )
    assert fitting(hosts, group) == ["a", "b", "c"]
    put(hosts, "first", "c", app="web")
    assert fitting(hosts, group) == ["c"]
    stranger = machine(affinity=Affinity(near=(term("app=nobody"),)))
    assert fitting(hosts, stranger) == []


def test_placed_machines_keep_those_away_that_they_must_be_apart_from() -> None:
    """The rule holds whichever of the two came first."""
    hosts = table(*ZONES)
    put(hosts, "loner", "a", Affinity(apart=(term("app=web", topology="zone"),)))
    assert fitting(hosts, machine(labels={"app": "web"})) == ["c", "d"]
    assert fitting(hosts, machine(labels={"app": "db"})) == ["a", "b", "c", "d"]
    hosts.release("loner")
    assert fitting(hosts, machine(labels={"app": "web"})) == ["a", "b", "c", "d"]


def test_a_machine_is_not_in_its_own_way() -> None:
    """When a machine that is placed is to move, it counts for others only."""
    rules = Affinity(apart=(term("app=web"),))
    hosts = table(host("a"), host("b"), host("c"))
    put(hosts, "uid-1", "a", rules, app="web")
    put(hosts, "uid-2", "b", rules, app="web")
    assert fitting(hosts, machine(labels={"app": "web"}, affinity=rules)) == ["a", "c"]


def test_machines_spread_while_they_can_and_wait_when_they_cannot() -> None:
    """Three of a kind on two hosts."""
    rules = Affinity(apart=(term("app=web"),))
    wanted = machine(labels={"app": "web"}, affinity=rules)
    hosts = table(host("a"), host("b"))
    for uid in ("one", "two"):
        decision = choose(hosts, wanted)
        assert isinstance(decision, Placed)
        put(hosts, uid, decision.host, rules, app="web")
    assert one_line(choose(hosts, wanted)) == (
        "0/2 hosts fit: 2 have machines with app=web, which it must be apart from"
    )


def test_wishes_draw_machines_together_and_push_them_apart() -> None:
    """And never keep one from being placed."""
    hosts = table(*ZONES)
    put(hosts, "db", "c", app="db")
    near = Affinity(rather_near=(PreferredMachines(50, term("app=db", topology="zone")),))
    apart = Affinity(rather_apart=(PreferredMachines(50, term("app=db", topology="zone")),))
    assert next(each.host for each in rated(choose(hosts, machine(affinity=near)))) == "c"
    assert [each.host for each in rated(choose(hosts, machine(affinity=apart)))][-1] == "c"


def test_the_more_there_are_the_more_a_wish_counts() -> None:
    """Ten machines that would rather be apart spread evenly over three hosts."""
    wish = Affinity(rather_apart=(PreferredMachines(1, term("app=web")),))
    wanted = machine(Resources(1, 1, 1), labels={"app": "web"}, affinity=wish)
    hosts = table(host("a"), host("b"), host("c"))
    hosts.take("big", "a", Resources(8, 8000, 50_000))
    for number in range(9):
        decision = choose(hosts, wanted)
        assert isinstance(decision, Placed)
        put(hosts, f"uid-{number}", decision.host, wish, app="web")
    assert sorted(int(hosts.machines[hosts.row(name)]) for name in "abc") == [3, 3, 4]


def test_placed_machines_wishes_count_for_newcomers() -> None:
    """Whoever would rather be alone is left alone if there is another place."""
    hosts = table(host("a"), host("b"))
    wish = Affinity(rather_apart=(PreferredMachines(10, term("app=web")),))
    put(hosts, "quiet", "a", wish)
    put(hosts, "x", "b")
    put(hosts, "y", "b")
    decision = choose(hosts, machine(labels={"app": "web"}))
    assert isinstance(decision, Placed)
    assert decision.host == "b"


def test_rules_are_about_their_own_namespaces() -> None:
    """Named ones, chosen ones, or all of them."""
    hosts = table(host("a"), host("b"), host("c"))
    hosts.take("db", "a", SMALL, neighbour=Neighbour("prod", {"app": "db"}))
    hosts.take("db2", "b", SMALL, neighbour=Neighbour("test", {"app": "db"}))
    hosts.company.set_namespace("prod", {"tier": "1"})

    def where(**which: object) -> list[str]:
        rule = MachineTerm(selecting("app=db"), None, **which)  # type: ignore[arg-type]
        return fitting(hosts, machine(affinity=Affinity(apart=(rule,))))

    assert where(namespaces=DEFAULT) == ["a", "b", "c"]
    assert where(namespaces=frozenset({"prod"})) == ["b", "c"]
    assert where(namespace_selector=selecting("tier=1")) == ["b", "c"]
    assert where(namespace_selector=Selector()) == ["c"]
    hosts.company.set_namespace("test", {"tier": "1"})
    assert where(namespace_selector=selecting("tier=1")) == ["c"]
    hosts.company.set_namespace("prod", None)
    assert where(namespace_selector=selecting("tier=1")) == ["a", "c"]


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        (Selector(), ["c"]),
        (None, ["a", "b", "c"]),
        (Selector((Requirement("app", "Exists"),)), ["b", "c"]),
        (Selector((Requirement("app", "DoesNotExist"),)), ["a", "c"]),
        (Selector((Requirement("app", "NotIn", ("db",)),)), ["a", "c"]),
        (Selector((Requirement("app", "In", ("db", "web")),)), ["b", "c"]),
    ],
)
def test_a_selector_means_these_machines(selector: Selector | None, names: list[str]) -> None:
    """An empty one means all, none means none, as in Kubernetes."""
    hosts = table(host("a"), host("b"), host("c"))
    put(hosts, "db", "a", app="db")
    put(hosts, "plain", "b")
    rule = MachineTerm(selector, None, DEFAULT)
    assert fitting(hosts, machine(affinity=Affinity(apart=(rule,)))) == names


def test_labels_that_change_change_the_company() -> None:
    """A machine is known by what it is called now."""
    hosts = table(host("a"), host("b"))
    put(hosts, "x", "a", app="db")
    wanted = machine(affinity=Affinity(apart=(term("app=db"),)))
    assert fitting(hosts, wanted) == ["b"]
    put(hosts, "x", "a", app="web")
    assert fitting(hosts, wanted) == ["a", "b"]


def test_rules_of_machines_that_never_came_are_forgotten() -> None:
    """One term each for thousands of machines must not stay for ever, nor lose what counts."""
    hosts = table(host("a"), host("b"))
    put(hosts, "loner", "a", Affinity(apart=(term("app=web"),)), app="loner")
    for number in range(3000):
        choose(hosts, machine(affinity=Affinity(apart=(term(f"app=n{number}"),))))
    assert len(hosts.company._terms) <= 1024
    assert fitting(hosts, machine(labels={"app": "web"})) == ["b"]
    assert fitting(hosts, machine(affinity=Affinity(apart=(term("app=loner"),)))) == ["b"]


def test_the_words_say_who_is_there_or_missing() -> None:
    """Of one host and of several."""
    hosts = table(*ZONES)
    put(hosts, "db", "a", app="db")
    put(hosts, "loner", "c", Affinity(apart=(term("app=web", topology="zone"),)))
    near = machine(affinity=Affinity(near=(term("app=db", topology="zone"),)))
    assert [each.sentence for each in refusals(choose(hosts, near))] == [
        "host c has no machines with app=db in zone=y",
        "host d lacks label zone, which podAffinity goes by",
    ]
    apart = machine(
        labels={"app": "web"}, affinity=Affinity(apart=(term("app=db", topology="zone"),))
    )
    assert [(each.filter, each.sentence) for each in refusals(choose(hosts, apart))] == [
        (
            "PodAntiAffinity",
            "host a has machines with app=db in zone=x, which it must be apart from",
        ),
        (
            "PodAntiAffinity",
            "host b has machines with app=db in zone=x, which it must be apart from",
        ),
        (
            "Neighbours",
            "host c has machines in zone=y that must be apart from machines with app=web",
        ),
    ]
    nowhere = machine(affinity=Affinity(near=(term("app=none"),)))
    assert one_line(choose(hosts, nowhere)) == "0/4 hosts fit: 4 have no machines with app=none"
