"""Says beforehand which machines cannot travel because no other host could ever take them.

Asked in every round of a machine, so it only looks at what hosts said of themselves that seldom
changes; when it does, the machines are looked at again for which the answer is another one. Room,
cordons and hosts that are down for a while are left to who chooses a host when a machine moves.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from novacron.controllers.ledger import Ledger
from novacron.core.cpu import Cpu
from novacron.core.driver import Capability
from novacron.core.host import DeclaredHost
from novacron.core.machine import Machine
from novacron.core.migration import NO_CERTIFICATES, NO_OTHER_HOST, uncertified

__all__ = ["Obstacle", "Prospects"]


class Obstacle(NamedTuple):
    """What keeps a machine where it is."""

    reason: str
    message: str


class _Kind(NamedTuple):
    """What makes one host as good as another for those that travel; there are few kinds."""

    driver: str
    cpu: Cpu | None
    encrypts: bool

    def takes_over(self, other: "_Kind") -> bool:
        if self.driver != other.driver:
            return False
        return self.cpu is None or other.cpu is None or self.cpu.can_take_over(other.cpu)


class _Traveller(NamedTuple):
    host: str
    encrypted: bool


@dataclass(slots=True)
class Prospects:
    """Which hosts could take a machine over from which.

    ``wake`` gets the UID of a machine that is to be looked at again.
    """

    ledger: Ledger
    wake: Callable[[str], None]
    _kinds: dict[str, _Kind] = field(default_factory=dict)
    _counts: Counter[_Kind] = field(default_factory=Counter)
    _told: dict[_Traveller, Obstacle | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ledger.on_host(self.host_changed)

    def obstacle(self, machine: Machine, host: str | None) -> Obstacle | None:
        """Return what keeps a machine from every other host, whenever it would be asked."""
        if host is None:
            return None
        traveller = _Traveller(host, machine.move_policy.encrypted)
        if traveller not in self._told:
            self._told[traveller] = self._answer(traveller)
        return self._told[traveller]

    def _answer(self, traveller: _Traveller) -> Obstacle | None:
        here = self._kinds.get(traveller.host)
        if here is None:
            return None  # it is none of ours, or its driver moves machines otherwise or never
        if traveller.encrypted and not here.encrypts:
            return Obstacle(NO_CERTIFICATES, uncertified(f"host {traveller.host} has no"))
        others = [kind for kind, count in self._counts.items() if count > (kind == here)]
        able = [kind for kind in others if kind.takes_over(here)]
        if not able:
            return Obstacle(NO_OTHER_HOST, _why_none(here, others))
        if traveller.encrypted and not any(kind.encrypts for kind in able):
            return Obstacle(NO_CERTIFICATES, uncertified("no other host has"))
        return None

    def host_changed(self, name: str) -> None:
        """Take note of what a host says now, and have the machines looked at that this is about."""
        before, now = self._kinds.get(name), _kind(self.ledger.declared.get(name))
        if now == before:
            return
        if before is not None:
            self._counts[before] -= 1
            if not self._counts[before]:
                del self._counts[before]
        if now is not None:
            self._kinds[name] = now
            self._counts[now] += 1
        else:
            del self._kinds[name]
            for encrypted in (False, True):
                self._told.pop(_Traveller(name, encrypted), None)
        self._tell()

    def _tell(self) -> None:
        for traveller, before in self._told.items():
            if (answer := self._answer(traveller)) != before:
                self._told[traveller] = answer
                for uid in self.ledger.machines_on(traveller.host):
                    self.wake(uid)


def _kind(host: DeclaredHost | None) -> _Kind | None:
    if host is None or not host.can(Capability.LIVE_MIGRATION.value):
        return None
    return _Kind(host.driver, host.cpu, host.can(Capability.ENCRYPTED_MIGRATION.value))


def _why_none(here: _Kind, others: list[_Kind]) -> str:
    if not any(kind.driver == here.driver for kind in others):
        return f"there is no other host with driver {here.driver}"
    assert here.cpu is not None
    return (
        f"no other host can give it the CPU that its host has ({here.cpu.model}): "
        "set spec.libvirt.cpuModel of the Hosts to one that all have"
    )
