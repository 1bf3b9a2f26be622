"""Which hosts have what machines ask of them, of all that seldom changes.

Many machines ask for the same, so it is looked up once for all of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from novacron.core.affinity import Affinity, HostTerm
from novacron.core.host import DeclaredHost
from novacron.core.machine import Machine, Power, Resources
from novacron.core.offer import Offer
from novacron.scheduler import HostTable, suited

__all__ = ["Equipment", "Suited", "Terms"]


class Terms(NamedTuple):
    """What a machine asks of a host beside room."""

    needs: frozenset[Offer] = frozenset()
    labels: frozenset[tuple[str, str]] = frozenset()
    hosts: tuple[HostTerm, ...] | None = None

    @classmethod
    def of(cls, machine: Machine) -> "Terms":
        """Return what a machine asks for."""
        affinity = machine.affinity
        labels = frozenset(machine.host_selector.items())
        return cls(machine.needs, labels, affinity.hosts if affinity else None)

    def asked(self) -> Machine:
        """Return a machine that asks for this and nothing else."""
        return Machine(
            uid="",
            namespace="",
            name="",
            wanted=Resources(),
            image="",
            power=Power.OFF,
            host_selector=dict(self.labels),
            affinity=Affinity(hosts=self.hosts) if self.hosts is not None else None,
            needs=self.needs,
        )


class Equipment(NamedTuple):
    """What of a host such terms are about."""

    offers: frozenset[Offer]
    labels: Mapping[str, str]
    node_labels: Mapping[str, str]

    @classmethod
    def of(cls, host: DeclaredHost | None) -> "Equipment | None":
        """Return what a host has; None of one that is not declared."""
        return None if host is None else cls(host.offers, host.labels, host.node_marks.labels)


@dataclass(slots=True)
class Suited:
    """The answers for all terms that were asked about since a host was equipped otherwise."""

    table: HostTable
    _equipment: dict[str, Equipment] = field(default_factory=dict)
    _hosts: dict[Terms, frozenset[str]] = field(default_factory=dict)

    def hosts(self, terms: Terms) -> frozenset[str]:
        """Return which hosts have what is asked for."""
        if terms not in self._hosts:
            self._hosts[terms] = suited(self.table, terms.asked())
        return self._hosts[terms]

    def changed(self, name: str, host: DeclaredHost | None) -> bool:
        """Take note of how a host is now; say whether other machines may find it suited."""
        before, now = self._equipment.get(name), Equipment.of(host)
        if before == now:
            return False
        if now is None:
            del self._equipment[name]
        else:
            self._equipment[name] = now
        self.forget()
        return True

    def forget(self) -> None:
        """Look everything up again."""
        self._hosts.clear()
