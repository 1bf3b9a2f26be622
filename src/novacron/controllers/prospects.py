"""Says beforehand which machines cannot travel because no other host could ever take them.

Asked in every round of a machine, so it only looks at what hosts said of themselves that seldom
changes; when it does, the machines are looked at again for which the answer is another one. Room,
cordons and hosts that are down for a while are left to who chooses a host when a machine moves.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from novacron.controllers.ledger import Ledger
from novacron.core.cpu import Cpu
from novacron.core.driver import Capability
from novacron.core.host import DeclaredHost
from novacron.core.machine import Machine, Observed
from novacron.core.migration import (
    HAS_SNAPSHOTS,
    NO_CERTIFICATES,
    NO_OTHER_HOST,
    uncertified,
)
from novacron.core.offer import Offer, OfferKind
from novacron.core.volume import APART

__all__ = ["Obstacle", "Prospects", "snapshots_within"]

SNAPSHOTS_STAY = (
    "its snapshots are within disks that no other host sees, and would not be in copies of them: "
    "delete them first, or have hosts see one storage"
)
NO_WAY = (
    "no other host says how it is reached by hosts: say so in spec.libvirt.migration.uri of theirs"
)
NOT_ASKED_YET = Offer(OfferKind.CAPABILITY, "*")


class Obstacle(NamedTuple):
    """What keeps a machine where it is."""

    reason: str
    message: str


class _Kind(NamedTuple):
    """What makes one host as good as another for those that travel; there are few kinds."""

    driver: str
    cpu: Cpu | None
    encrypts: bool
    takes_in: bool

    def gives(self, cpu: Cpu | None) -> bool:
        return self.cpu is None or cpu is None or self.cpu.can_take_over(cpu)


class _Traveller(NamedTuple):
    """Machines on one host that are alike.

    ``cpu`` is the word for that of a running guest. ``within`` are the storage classes of disks
    that have something which copies would not have; the one without a name is the host's own.
    """

    host: str
    encrypted: bool
    cpu: str
    within: frozenset[str]


class _Storage(NamedTuple):
    """What a host's places for disks are known by: all that it sees, and that of each class."""

    seen: frozenset[str] = frozenset()
    classes: frozenset[tuple[str, str]] = frozenset()

    def of(self, classes: frozenset[str]) -> frozenset[str]:
        """Return the places of these classes, as far as the host told what they are known by."""
        return frozenset(place for name, place in self.classes if name in classes)


NO_STORAGE = _Storage()


@dataclass(slots=True)
class Prospects:
    """Which hosts could take a machine over from which.

    ``wake`` gets the UID of a machine that is to be looked at again.
    """

    ledger: Ledger
    wake: Callable[[str], None]
    _kinds: dict[str, _Kind] = field(default_factory=dict)
    _counts: Counter[_Kind] = field(default_factory=Counter)
    _storage: dict[str, _Storage] = field(default_factory=dict)
    _seen_by: Counter[str] = field(default_factory=Counter)
    _told: dict[_Traveller, Obstacle | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ledger.on_host(self.host_changed)

    def obstacle(
        self, machine: Machine, host: str | None, *, within: frozenset[str] = frozenset()
    ) -> Obstacle | None:
        """Return what keeps a machine from every other host, whenever it would be asked.

        ``within`` are the storage classes of its disks where there are snapshots within those.
        """
        if host is None:
            return None
        traveller = _Traveller(host, machine.move_policy.encrypted, machine.guest_cpu, within)
        if traveller not in self._told:
            self._told[traveller] = self._answer(traveller)
        return self._told[traveller]

    def _answer(self, traveller: _Traveller) -> Obstacle | None:
        here = self._kinds.get(traveller.host)
        if here is None:
            return None  # it is none of ours, or its driver moves machines otherwise or never
        if traveller.encrypted and not here.encrypts:
            return Obstacle(NO_CERTIFICATES, uncertified(f"host {traveller.host} has no"))
        # Its host may have got another one since it was started, or it came from elsewhere.
        own = self.ledger.table.cpus.called(traveller.cpu) if traveller.cpu else None
        found = self._elsewhere(here, own or here.cpu, encrypted=traveller.encrypted)
        if found is None and not self._shares(traveller.host, traveller.within):
            return Obstacle(HAS_SNAPSHOTS, SNAPSHOTS_STAY)
        return found

    def _shares(self, host: str, classes: frozenset[str]) -> bool:
        """Say whether other hosts see each of these places of a host, or nobody can tell."""
        places = self._storage.get(host, NO_STORAGE).of(classes)
        return all(self._seen_by[each] > 1 for each in places)

    def _elsewhere(self, here: _Kind, cpu: Cpu | None, *, encrypted: bool) -> Obstacle | None:
        others = [
            kind
            for kind, count in self._counts.items()
            if kind.driver == here.driver and count > (kind == here)
        ]
        if not others:
            return Obstacle(NO_OTHER_HOST, f"there is no other host with driver {here.driver}")
        if not (others := [kind for kind in others if kind.takes_in]):
            return Obstacle(NO_OTHER_HOST, NO_WAY)
        if encrypted and not any(kind.encrypts for kind in others):
            return Obstacle(NO_CERTIFICATES, uncertified("no other host has"))
        safe = [kind for kind in others if kind.encrypts or not encrypted]
        return None if any(kind.gives(cpu) for kind in safe) else _no_such_cpu(cpu, safe, others)

    def host_changed(self, name: str) -> None:
        """Take note of what a host says now, and have the machines looked at that this is about."""
        host = self.ledger.declared.get(name)
        before, now = self._kinds.get(name), _kind(host)
        had, storage = self._storage.get(name, NO_STORAGE), _storage(host)
        if now == before and storage == had:
            return
        self._seen_by.subtract(had.seen)
        self._seen_by.update(storage.seen)
        self._storage[name] = storage
        if storage == NO_STORAGE:
            del self._storage[name]
        self._count(name, before, now)
        self._tell()
        if now is None:
            self._told = {each: said for each, said in self._told.items() if each.host != name}

    def _count(self, name: str, before: _Kind | None, now: _Kind | None) -> None:
        if before is not None:
            self._counts[before] -= 1
            if not self._counts[before]:
                del self._counts[before]
        if now is not None:
            self._kinds[name] = now
            self._counts[now] += 1
        else:
            self._kinds.pop(name, None)

    def _tell(self) -> None:
        for traveller, before in self._told.items():
            if (answer := self._answer(traveller)) != before:
                self._told[traveller] = answer
                for uid in self.ledger.machines_on(traveller.host):
                    self.wake(uid)


def snapshots_within(seen: Observed | None) -> frozenset[str]:
    """Return the storage classes of a machine's disks, where it has snapshots.

    Of a disk that was plugged in after all of them too: with snapshots no disk is copied.
    """
    if seen is None or not seen.snapshots:
        return frozenset()
    plugged = (each for each in seen.volumes if each.attachment not in APART)
    return frozenset(("", *(each.storage_class or "" for each in plugged)))


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


def _no_such_cpu(cpu: Cpu | None, safe: Sequence[_Kind], others: Sequence[_Kind]) -> Obstacle:
    assert cpu is not None, "any host has a CPU that nobody knows"
    who = "no other host" if len(safe) == len(others) else "no other host that has certificates"
    return Obstacle(
        NO_OTHER_HOST,
        f"{who} can give it the CPU that it has ({cpu.model}): set spec.libvirt.cpuModel of the "
        "Hosts to one that all have",
    )
