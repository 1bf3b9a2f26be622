"""Says beforehand which machines cannot travel because no other host could ever take them.

Asked in every round of a machine, so it only looks at what hosts said of themselves that seldom
changes; when it does, the machines are looked at again for which the answer is another one. Room,
cordons and hosts that are down for a while are left to who chooses a host when a machine moves.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from novacron.controllers.ledger import Ledger
from novacron.controllers.suited import Suited, Terms
from novacron.controllers.tied import NOT_TIED, Obstacle, Tied
from novacron.core.cpu import Cpu
from novacron.core.driver import Capability
from novacron.core.host import DeclaredHost
from novacron.core.machine import Machine
from novacron.core.migration import NO_CERTIFICATES, NO_OTHER_HOST, uncertified
from novacron.core.offer import Offer, OfferKind

__all__ = ["Prospects"]

NO_WAY = (
    "no other host says how it is reached by hosts: say so in spec.libvirt.migration.uri of theirs"
)
NOT_WHAT_IT_ASKS = (
    "no other host that could take it over has the labels, networks, storage classes and abilities "
    "that it asks for: novacron explain vm says of each what is missing"
)
NOT_ASKED_YET = Offer(OfferKind.CAPABILITY, "*")
# Hosts of a release or of a fleet change one after the other; whom that concerns is told together.
PATIENCE_SECONDS = 1.0
MANY = 1000


class _Kind(NamedTuple):
    """What makes one host as good as another for those that travel; there are few kinds."""

    driver: str
    cpu: Cpu | None
    encrypts: bool
    takes_in: bool

    def gives(self, cpu: Cpu | None) -> bool:
        return self.cpu is None or cpu is None or self.cpu.can_take_over(cpu)


class _Traveller(NamedTuple):
    """Machines on one host that are alike; ``cpu`` is the word for that of a running guest."""

    host: str
    encrypted: bool
    cpu: str
    tied: Tied
    terms: Terms


class _Question(NamedTuple):
    """What is asked of all other hosts; ``itself`` says whether the own one would do as well."""

    here: _Kind
    cpu: Cpu | None
    encrypted: bool
    itself: bool
    terms: Terms


class _Storage(NamedTuple):
    """What a host's places for disks are known by: all that it sees, and that of each class."""

    seen: frozenset[str] = frozenset()
    classes: frozenset[tuple[str, str]] = frozenset()

    def of(self, classes: frozenset[str]) -> frozenset[str]:
        """Return the places of these classes, as far as the host told what they are known by."""
        return frozenset(place for name, place in self.classes if name in classes)


class _Told(NamedTuple):
    """What was said last of machines that are alike."""

    answer: Obstacle | None
    uids: set[str]


K = TypeVar("K")
NO_STORAGE = _Storage()
NOBODY: frozenset[str] = frozenset()


def in_a_moment(call: Callable[[], None]) -> object:
    """Have something called once, soon."""
    return asyncio.get_running_loop().call_later(PATIENCE_SECONDS, call)


@dataclass(slots=True)
class Prospects:
    """Which hosts could take a machine over from which.

    ``wake`` gets the UID of a machine that is to be looked at again, which is found out ``soon``
    after a host changed.
    """

    ledger: Ledger
    wake: Callable[[str], None]
    soon: Callable[[Callable[[], None]], object] = in_a_moment
    _kinds: dict[str, _Kind] = field(default_factory=dict)
    _of_kind: dict[_Kind, set[str]] = field(default_factory=dict)
    _storage: dict[str, _Storage] = field(default_factory=dict)
    _seers: dict[str, set[str]] = field(default_factory=dict)
    _suited: Suited = field(init=False)
    _answers: dict[_Question, Obstacle | None] = field(default_factory=dict)
    _told: dict[_Traveller, _Told] = field(default_factory=dict)
    _travellers: dict[str, _Traveller] = field(default_factory=dict)
    # Who was told something newer than all that are alike: hosts may have changed back since.
    _told_more: set[str] = field(default_factory=set)
    _outdated: bool = False

    def __post_init__(self) -> None:
        self._suited = Suited(self.ledger.table)
        self.ledger.on_host(self.host_changed)

    @property
    def remembered(self) -> int:
        """For how many kinds of machines an answer is remembered."""
        return len(self._told)

    def obstacle(
        self, machine: Machine, host: str | None, tied: Tied = NOT_TIED
    ) -> Obstacle | None:
        """Return what keeps a machine from every other host, whenever it would be asked."""
        if host is None:
            return None
        encrypted, cpu = machine.move_policy.encrypted, machine.guest_cpu
        traveller = _Traveller(host, encrypted, cpu, tied, Terms.of(machine))
        answer = self._answer(traveller)
        if self._travellers.get(machine.uid) != traveller:
            self.gone(machine.uid)
            self._travellers[machine.uid] = traveller
            self._told.setdefault(traveller, _Told(answer, set())).uids.add(machine.uid)
        # Others that are alike may have been told something else, and are still to hear of it.
        if answer != self._told[traveller].answer:
            self._told_more.add(machine.uid)
        return answer

    def gone(self, uid: str) -> None:
        """Forget a machine."""
        self._told_more.discard(uid)
        traveller = self._travellers.pop(uid, None)
        if traveller is not None:
            alike = self._told[traveller].uids
            alike.discard(uid)
            if not alike:
                del self._told[traveller]

    def _answer(self, traveller: _Traveller) -> Obstacle | None:
        here = self._kinds.get(traveller.host)
        if here is None:
            return None  # it is none of ours, or its driver moves machines otherwise or never
        if traveller.encrypted and not here.encrypts:
            return Obstacle(NO_CERTIFICATES, uncertified(f"host {traveller.host} has no"))
        # Its host may have got another one since it was started, or it came from elsewhere.
        own = self.ledger.table.cpus.called(traveller.cpu) if traveller.cpu else None
        itself = traveller.host in self._suited.hosts(traveller.terms)
        asked = _Question(here, own or here.cpu, traveller.encrypted, itself, traveller.terms)
        if asked not in self._answers:
            if len(self._answers) > MANY + len(self._travellers):
                self._answers.clear()  # most of them are of machines that ask otherwise by now
                self._suited.forget()
            self._answers[asked] = self._elsewhere(asked)
        return self._answers[asked] or self._tie(traveller, here)

    def _tie(self, traveller: _Traveller, here: _Kind) -> Obstacle | None:
        for classes, obstacle in traveller.tied.obstacles:
            if not self._shares(traveller, here, classes):
                return obstacle
        return None

    def _shares(self, traveller: _Traveller, here: _Kind, classes: frozenset[str]) -> bool:
        """Say whether another host sees these places of a host, or nobody can tell."""
        places = self._storage.get(traveller.host, NO_STORAGE).of(classes)
        if not places:
            return True
        seen_by = frozenset.intersection(*(NOBODY.union(self._seers.get(it, ())) for it in places))
        others = seen_by - {traveller.host}
        able = (names for kind, names in self._takers(here.driver).items() if kind.takes_in)
        return bool(others) and not others.isdisjoint(
            self._suited.hosts(traveller.terms) & NOBODY.union(*able)
        )

    def _elsewhere(self, asked: _Question) -> Obstacle | None:
        here = asked.here
        others = {
            kind: names
            for kind, names in self._takers(here.driver).items()
            if len(names) > (kind == here)
        }
        if not others:
            return Obstacle(NO_OTHER_HOST, f"there is no other host with driver {here.driver}")
        takers = {kind: names for kind, names in others.items() if kind.takes_in}
        if not takers:
            return Obstacle(NO_OTHER_HOST, NO_WAY)
        if asked.encrypted and not any(kind.encrypts for kind in takers):
            return Obstacle(NO_CERTIFICATES, uncertified("no other host has"))
        suited = self._suited.hosts(asked.terms)
        return _among(
            [
                kind
                for kind, names in takers.items()
                if len(names & suited) > (asked.itself and kind == here)
            ],
            asked,
        )

    def _takers(self, driver: str) -> dict[_Kind, set[str]]:
        """Return the hosts of a driver by their kinds."""
        return {kind: names for kind, names in self._of_kind.items() if kind.driver == driver}

    def host_changed(self, name: str) -> None:
        """Take note of what a host says now, and have the machines looked at that this is about."""
        host = self.ledger.declared.get(name)
        before, now = self._kinds.get(name), _kind(host)
        had, storage = self._storage.get(name, NO_STORAGE), _storage(host)
        if not self._suited.changed(name, host) and now == before and storage == had:
            return
        for place in had.seen:
            _discard(self._seers, place, name)
        for place in storage.seen:
            self._seers.setdefault(place, set()).add(name)
        self._storage[name] = storage
        if storage == NO_STORAGE:
            del self._storage[name]
        self._change_kind(name, before, now)
        self._answers.clear()
        if not self._outdated:
            self._outdated = True
            self.soon(self._tell)

    def _change_kind(self, name: str, before: _Kind | None, now: _Kind | None) -> None:
        if before is not None:
            _discard(self._of_kind, self._kinds.pop(name), name)
        if now is not None:
            self._kinds[name] = now
            self._of_kind.setdefault(now, set()).add(name)

    def _tell(self) -> None:
        """Have those looked at again for whom the answer is another one by now."""
        self._outdated = False
        for uid in [each for each in self._travellers if self.ledger.table.held(each) is None]:
            self.gone(uid)
        concerned, self._told_more = self._told_more, set()
        for traveller, (before, uids) in list(self._told.items()):
            if (answer := self._answer(traveller)) != before:
                self._told[traveller] = _Told(answer, uids)
                concerned |= uids
        for uid in concerned:
            self.wake(uid)


def _among(others: list[_Kind], asked: _Question) -> Obstacle | None:
    """Return what keeps a machine from all hosts that have what it asks for."""
    if not others:
        return Obstacle(NO_OTHER_HOST, NOT_WHAT_IT_ASKS)
    safe = [kind for kind in others if kind.encrypts or not asked.encrypted]
    if not safe:
        # Others have some: whoever chooses a host says of each what it lacks.
        return Obstacle(NO_OTHER_HOST, uncertified("no other host that has what it asks for has"))
    if any(kind.gives(asked.cpu) for kind in safe):
        return None
    assert asked.cpu is not None, "any host has a CPU that nobody knows"
    who = "no other host" if len(safe) == len(others) else "no other host that has certificates"
    return Obstacle(
        NO_OTHER_HOST,
        f"{who} can give it the CPU that it has ({asked.cpu.model}): set spec.libvirt.cpuModel of "
        "the Hosts to one that all have",
    )


def _discard(index: dict[K, set[str]], key: K, name: str) -> None:
    index[key].discard(name)
    if not index[key]:
        del index[key]


def _kind(host: DeclaredHost | None) -> _Kind | None:
    """Return what a host is for those that travel; nothing before it was asked what it can do."""
    if host is None or NOT_ASKED_YET in host.offers:
        return None
    if not host.can(Capability.LIVE_MIGRATION.value):
        return None
    encrypts, takes_in = (
        host.can(each.value)
        for each in (Capability.ENCRYPTED_MIGRATION, Capability.MIGRATION_TARGET)
    )
    return _Kind(host.driver, host.cpu, encrypts, takes_in)


def _storage(host: DeclaredHost | None) -> _Storage:
    if host is None:
        return NO_STORAGE
    places = {each.storage_class: each.id for each in host.rooms} | {"": host.own_storage}
    return _Storage(host.storage_ids, frozenset(each for each in places.items() if each[1]))
