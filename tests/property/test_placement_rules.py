"""Required rules hold in every cluster, in whatever order machines come, go, grow and are renamed.

Beside the table runs a plain list of who is where, and the rules are checked on that list with
the plainest code there is.
"""

from dataclasses import dataclass, replace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from novacron.core.affinity import (
    Affinity,
    HostTerm,
    MachineTerm,
    PreferredMachines,
    Requirement,
    Selector,
    Toleration,
)
from novacron.core.devices import HostDevice
from novacron.core.host import Host, Taint
from novacron.core.machine import Machine, Power, Resources
from novacron.core.wanted_device import WantedDevice
from novacron.scheduler import HostTable, Placed, choose, fits, one_line, rated, refusals

PATIENT = settings(deadline=None, suppress_health_check=list(HealthCheck))

NAMES = [f"host-{number}" for number in range(5)]
APPS, ZONES = st.sampled_from(["web", "db"]), st.sampled_from(["x", "y"])
LABELS = st.dictionaries(st.just("app"), APPS)
REQUIREMENTS = st.sampled_from(
    [
        Requirement("app", "In", ("web",)),
        Requirement("app", "In", ("db", "web")),
        Requirement("app", "NotIn", ("db",)),
        Requirement("app", "Exists"),
    ]
)
TERMS = st.builds(
    MachineTerm,
    selector=st.lists(REQUIREMENTS, max_size=2).map(lambda found: Selector(tuple(found))),
    topology=st.sampled_from([None, "zone"]),
    namespaces=st.just(frozenset({"default"})),
)
FEW_TERMS = st.lists(TERMS, max_size=1).map(tuple)
WISHES = st.lists(st.builds(PreferredMachines, st.just(1), TERMS), max_size=1).map(tuple)
AFFINITIES = st.builds(
    Affinity,
    hosts=st.none() | st.just((HostTerm((Requirement("zone", "In", ("x",)),)),)),
    near=FEW_TERMS,
    apart=FEW_TERMS,
    rather_near=WISHES,
    rather_apart=WISHES,
)
GPUS = tuple(HostDevice(str(n), "gpu", "nvidia", f"m{n % 2}", n % 2) for n in range(3))
WANTED = st.lists(
    st.builds(
        WantedDevice,
        st.just("gpu"),
        model=st.sampled_from([None, "m0", "m1"]),
        count=st.integers(1, 2),
    ),
    max_size=2,
).map(tuple)
SIZES = st.builds(Resources, st.integers(0, 2), st.integers(0, 2), st.just(0))
MACHINES = st.builds(
    Machine,
    uid=st.just(""),
    namespace=st.just("default"),
    name=st.just("vm"),
    wanted=SIZES,
    image=st.just("tiny"),
    power=st.just(Power.ON),
    labels=LABELS,
    affinity=st.none() | AFFINITIES,
    wanted_devices=st.just(()) | WANTED,
    tolerations=st.just(()) | st.just((Toleration("team"),)),
)
HOSTS = st.builds(
    Host,
    name=st.sampled_from(NAMES),
    allocatable=st.just(Resources(4, 4, 4)),
    labels=st.dictionaries(st.just("zone"), ZONES),
    taints=st.sampled_from([(), (), (Taint("team", "NoSchedule"),)]),
    devices=st.sampled_from([(), GPUS, GPUS[:1]]),
)


@dataclass(frozen=True)
class Put:
    """A machine on a host, with what it got there."""

    machine: Machine
    host: str
    devices: tuple[HostDevice, ...]


class Fleet(RuleBasedStateMachine):
    """A placer's day under all rules. Hosts keep their marks: rules bind those who come."""

    machines = Bundle("machines")

    def __init__(self) -> None:
        super().__init__()
        self.table = HostTable()
        self.hosts: dict[str, Host] = {}
        self.put: dict[str, Put] = {}
        self.count = 0

    @rule(host=HOSTS)
    def declare(self, host: Host) -> None:
        self.table.upsert(self.hosts.setdefault(host.name, host))

    @rule(target=machines, machine=MACHINES)
    def place(self, machine: Machine) -> object:
        self.count += 1
        machine = replace(machine, uid=f"uid-{self.count}")
        decision = choose(self.table, machine)
        told = [each.host for each in refusals(decision)] + [e.host for e in rated(decision)]
        assert sorted(told) == sorted(self.hosts)
        assert one_line(decision)
        may = [name for name in self.hosts if self._may(machine, name)]
        assert sorted(each.host for each in rated(decision)) == sorted(may)
        if not isinstance(decision, Placed):
            return multiple()
        self._take(Put(machine, decision.host, decision.devices), machine.wanted)
        self._devices_are_as_asked(machine, decision.devices)
        return machine.uid

    @rule(uid=machines, size=SIZES)
    def resize(self, uid: str, size: Resources) -> None:
        put = self.put[uid]
        if fits(self.table, uid, put.host, size) is None:
            self._take(replace(put, machine=replace(put.machine, wanted=size)), size)

    @rule(uid=machines, labels=LABELS)
    def rename(self, uid: str, labels: dict[str, str]) -> None:
        put = self.put[uid]
        changed = replace(put, machine=replace(put.machine, labels=labels))
        self._take(changed, put.machine.wanted)

    @rule(uid=consumes(machines))
    def release(self, uid: str) -> None:
        self.table.release(uid)
        del self.put[uid]

    @invariant()
    def no_device_is_given_twice_and_no_room_either(self) -> None:
        for name, host in self.hosts.items():
            here = [put for put in self.put.values() if put.host == name]
            given = [device.address for put in here for device in put.devices]
            assert len(given) == len(set(given))
            assert sum((put.machine.wanted for put in here), Resources()).fits(host.allocatable)

    def _take(self, put: Put, size: Resources) -> None:
        self.put[put.machine.uid] = put
        addresses = tuple(device.address for device in put.devices)
        self.table.take(
            put.machine.uid, put.host, size, neighbour=put.machine.neighbour, devices=addresses
        )

    def _devices_are_as_asked(self, machine: Machine, devices: tuple[HostDevice, ...]) -> None:
        assert len(devices) == sum(each.count for each in machine.wanted_devices)
        for each in machine.wanted_devices:
            assert sum(each.is_met_by(device) for device in devices) >= each.count

    def _may(self, machine: Machine, name: str) -> bool:
        """The rules once more, one host and one machine at a time."""
        host, rules = self.hosts[name], machine.affinity or Affinity()
        here = [put for put in self.put.values() if put.host == name]
        left = host.allocatable - sum((put.machine.wanted for put in here), Resources())
        return (
            machine.wanted.fits(left)
            and not any(
                not any(each.tolerates(taint) for each in machine.tolerations)
                for taint in host.taints
            )
            and (rules.hosts is None or any(term.met_by(name, host.labels) for term in rules.hosts))
            and self._has_devices(machine, host, here)
            and all(self._near(machine, term, host) for term in rules.near)
            and not any(self._together(term, host, self.put.values()) for term in rules.apart)
            and not any(
                term.selector.selects(machine.labels) and self._same(term, put.host, host)
                for put in self.put.values()
                for term in (put.machine.affinity or Affinity()).apart
            )
        )

    def _has_devices(self, machine: Machine, host: Host, here: list[Put]) -> bool:
        taken = {device.address for put in here for device in put.devices}
        left = [device for device in host.devices if device.address not in taken]
        slots = [each for each in machine.wanted_devices for _ in range(each.count)]
        return _can_seat(slots, left)

    def _near(self, machine: Machine, term: MachineTerm, host: Host) -> bool:
        if term.topology and term.topology not in host.labels:
            return False
        selected = [p for p in self.put.values() if term.selector.selects(p.machine.labels)]
        if not selected:
            return term.selector.selects(machine.labels)
        return self._together(term, host, selected)

    def _together(self, term: MachineTerm, host: Host, puts: object) -> bool:
        return any(
            term.selector.selects(put.machine.labels) and self._same(term, put.host, host)
            for put in puts
        )

    def _same(self, term: MachineTerm, other: str, host: Host) -> bool:
        if term.topology is None:
            return other == host.name
        value = host.labels.get(term.topology)
        return value is not None and self.hosts[other].labels.get(term.topology) == value


def _can_seat(slots: list[WantedDevice], left: list[HostDevice]) -> bool:
    if not slots:
        return True
    first, rest = slots[0], slots[1:]
    return any(
        first.is_met_by(device) and _can_seat(rest, [each for each in left if each != device])
        for device in left
    )


TestRequiredRulesAlwaysHold = Fleet.TestCase
TestRequiredRulesAlwaysHold.settings = settings(PATIENT, max_examples=80, stateful_step_count=40)
