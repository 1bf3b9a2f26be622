"""What holds for every cluster and every machine, not only for those we thought of."""

import operator
from functools import partial

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
)

from novacron.core.host import Host, Taint
from novacron.core.machine import Machine, Power, Resources
from novacron.scheduler import HostTable, Placed, choose, fits, one_line, refusals

# Figures of speed belong in the bench; a busy machine must not fail a property.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

NAMES = st.sampled_from([f"host-{number}" for number in range(8)])
# Few different amounts: then machines fill hosts to the last unit, miss by one, and tie.
AMOUNTS = st.builds(Resources, st.integers(0, 3), st.integers(0, 3), st.integers(0, 3))
GROWN = st.builds(Resources, st.integers(0, 7), st.integers(0, 4), st.integers(0, 7))
ROOMS = st.sampled_from([Resources(3, 3, 3), Resources(6, 6, 6), Resources(6, 3, 6)])
MOSTLY = st.sampled_from([True, True, True, False])
LABELS = st.dictionaries(st.sampled_from(["gpu", "zone"]), st.sampled_from(["x", "y"]))
TAINTS = st.lists(
    st.builds(
        Taint,
        st.just("team"),
        st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"]),
    ),
    max_size=1,
).map(tuple)
HOSTS = st.builds(
    Host,
    name=NAMES,
    allocatable=ROOMS,
    labels=LABELS,
    taints=TAINTS,
    unschedulable=MOSTLY.map(operator.not_),
    ready=MOSTLY,
    why_not_ready=st.sampled_from(["", "no answer"]),
)
CLUSTERS = st.lists(HOSTS, max_size=8, unique_by=lambda host: host.name)
MACHINES = st.builds(
    Machine,
    uid=st.just("uid-1"),
    namespace=st.just("default"),
    name=st.just("web"),
    wanted=AMOUNTS,
    image=st.just("tiny"),
    power=st.just(Power.ON),
    host_selector=st.just({}) | LABELS,
    refused_hosts=st.frozensets(NAMES, max_size=2),
)
TAKEN = st.lists(st.tuples(NAMES, AMOUNTS), max_size=6)


def _table(hosts: list[Host], taken: list[tuple[str, Resources]]) -> HostTable:
    table = HostTable()
    for host in hosts:
        table.upsert(host)
    for number, (name, amount) in enumerate(taken):
        table.take(f"taken-{number}", name, amount)
    return table


def _may_take(host: Host, machine: Machine, free: Resources) -> bool:
    """The rules once more, one host at a time and without arrays."""
    return (
        host.ready
        and not host.unschedulable
        and host.name not in machine.refused_hosts
        and machine.host_selector.items() <= host.labels.items()
        and not any(taint.effect in ("NoSchedule", "NoExecute") for taint in host.taints)
        and machine.wanted.fits(free)
    )


@PATIENT
@given(hosts=CLUSTERS, taken=TAKEN, machine=MACHINES)
def test_every_host_is_either_refused_once_or_fits(
    hosts: list[Host], taken: list[tuple[str, Resources]], machine: Machine
) -> None:
    """And which it is, is what the plain rules say."""
    decision = choose(_table(hosts, taken), machine)
    told = [refusal.host for refusal in refusals(decision)]
    free = {
        host.name: sum(
            (Resources() - took for name, took in taken if name == host.name), host.allocatable
        )
        for host in hosts
    }
    fitting = {host.name for host in hosts if _may_take(host, machine, free[host.name])}
    assert sorted([*told, *fitting]) == sorted(host.name for host in hosts)
    assert isinstance(decision, Placed) == bool(fitting)
    assert not isinstance(decision, Placed) or decision.host in fitting


@PATIENT
@given(hosts=CLUSTERS, taken=TAKEN, machine=MACHINES, data=st.data())
def test_the_order_in_which_things_were_told_does_not_matter(
    hosts: list[Host], taken: list[tuple[str, Resources]], machine: Machine, data: st.DataObject
) -> None:
    """A restarted operator hears of the same cluster in another order."""
    first = choose(_table(hosts, taken), machine)
    table = HostTable()
    tellings = [partial(table.upsert, host) for host in hosts]
    tellings += [partial(table.take, f"taken-{n}", *took) for n, took in enumerate(taken)]
    for tell in data.draw(st.permutations(tellings)):
        tell()
    second = choose(table, machine)
    assert (one_line(first), refusals(first)) == (one_line(second), refusals(second))


@PATIENT
@given(hosts=CLUSTERS, taken=TAKEN, machine=MACHINES, more=HOSTS)
def test_one_more_host_never_leaves_a_machine_without_one(
    hosts: list[Host], taken: list[tuple[str, Resources]], machine: Machine, more: Host
) -> None:
    """Whoever adds a host must not break what would have worked."""
    hosts = [host for host in hosts if host.name != more.name]
    before = choose(_table(hosts, taken), machine)
    after = choose(_table([*hosts, more], taken), machine)
    assert isinstance(after, Placed) or not isinstance(before, Placed)


@PATIENT
@given(hosts=CLUSTERS, taken=TAKEN, machine=MACHINES)
def test_ratings_lie_between_nought_and_one(
    hosts: list[Host], taken: list[tuple[str, Resources]], machine: Machine
) -> None:
    """Weights mean something only between ratings of the same measure."""
    decision = choose(_table(hosts, taken), machine)
    if isinstance(decision, Placed):
        assert all(0 <= rating <= 1 for rating in (decision.score, *decision.scores.values()))


class Cluster(RuleBasedStateMachine):
    """A placer's day: machines come, go and change size while hosts come, go and change marks.

    Beside the table runs a plain dictionary of who is where; hosts keep the room they were
    declared with, so that an overfull host can only be the scheduler's fault.
    """

    machines = Bundle("machines")

    def __init__(self) -> None:
        super().__init__()
        self.table = HostTable()
        self.rooms: dict[str, Resources] = {}
        self.where: dict[str, tuple[str, Resources]] = {}
        self.count = 0

    @rule(host=HOSTS)
    def declare(self, host: Host) -> None:
        room = self.rooms.setdefault(host.name, host.allocatable)
        self.table.upsert(
            Host(host.name, room, host.labels, host.taints, host.unschedulable, host.ready)
        )

    @rule(name=NAMES)
    def remove(self, name: str) -> None:
        self.table.remove(name)

    @rule(target=machines, machine=MACHINES)
    def place(self, machine: Machine) -> object:
        decision = choose(self.table, machine)
        if not isinstance(decision, Placed):
            return multiple()
        self.count += 1
        uid = f"placed-{self.count}"
        self.table.take(uid, decision.host, machine.wanted)
        self.where[uid] = decision.host, machine.wanted
        return uid

    @rule(uid=machines, size=GROWN)
    def resize(self, uid: str, size: Resources) -> None:
        host, _ = self.where[uid]
        if fits(self.table, uid, host, size) is None:
            self.table.take(uid, host, size)
            self.where[uid] = host, size

    @rule(uid=consumes(machines))
    def release(self, uid: str) -> None:
        self.table.release(uid)
        del self.where[uid]

    @invariant()
    def no_host_gives_more_than_it_has(self) -> None:
        for name, room in self.rooms.items():
            used = sum((size for host, size in self.where.values() if host == name), Resources())
            assert used.fits(room)
            row = self.table.row(name)
            if row is not None:
                assert Resources(*map(int, self.table.free[:, row])) == room - used


TestTheSchedulerNeverOvercommits = Cluster.TestCase
TestTheSchedulerNeverOvercommits.settings = settings(
    PATIENT, max_examples=60, stateful_step_count=40
)
