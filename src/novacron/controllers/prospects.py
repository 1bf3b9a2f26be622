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
from novacron.core.machine import Machine
from novacron.core.migration import (
    HAS_SNAPSHOTS,
    NO_CERTIFICATES,
    NO_OTHER_HOST,
    uncertified,
)
from novacron.core.offer import Offer, OfferKind

__all__ = ["Obstacle", "Prospects"]

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

    ``cpu`` is the word for that of a running guest. One that is ``bound`` has something within its
    disks that copies would not have.
    """

    host: str
    encrypted: bool
    cpu: str
    bound: bool


@dataclass(slots=True)
class Prospects:
    """Which hosts could take a machine over from which.

    ``wake`` gets the UID of a machine that is to be looked at again.
    """

    ledger: Ledger
    wake: Callable[[str], None]
    _kinds: dict[str, _Kind] = field(default_factory=dict)
    _counts: Counter[_Kind] = field(default_factory=Counter)
    _storage: dict[str, frozenset[str]] = field(default_factory=dict)
    _seen_by: Counter[str] = field(default_factory=Counter)
    _told: dict[_Traveller, Obstacle | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ledger.on_host(self.host_changed)

    def obstacle(
        self, machine: Machine, host: str | None, *, bound: bool = False
    ) -> Obstacle | None:
        """Return what keeps a machine from every other host, whenever it would be asked."""
        if host is None:
            return None
        traveller = _Traveller(host, machine.move_policy.encrypted, machine.guest_cpu, bound)
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
        if found is None and traveller.bound and not self._shares(traveller.host):
            return Obstacle(HAS_SNAPSHOTS, SNAPSHOTS_STAY)
        return found

    def _shares(self, host: str) -> bool:
        """Say whether another host sees some of its storage, or nobody can tell."""
        own = self._storage.get(host)
        return not own or any(self._seen_by[each] > 1 for each in own)

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
        storage = host.storage_ids if host is not None else frozenset()
        if now == before and storage == self._storage.get(name, frozenset()):
            return
        self._seen_by.subtract(self._storage.pop(name, ()))
        self._seen_by.update(storage)
        if storage:
            self._storage[name] = storage
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


def _no_such_cpu(cpu: Cpu | None, safe: Sequence[_Kind], others: Sequence[_Kind]) -> Obstacle:
    assert cpu is not None, "any host has a CPU that nobody knows"
    who = "no other host" if len(safe) == len(others) else "no other host that has certificates"
    return Obstacle(
        NO_OTHER_HOST,
        f"{who} can give it the CPU that it has ({cpu.model}): set spec.libvirt.cpuModel of the "
        "Hosts to one that all have",
    )
