"""What draws a machine to hosts and to other machines, and what keeps it away from them.

The rules are those of Kubernetes' scheduler for pods and nodes, said of machines and hosts.
Nothing here knows how an API writes them, nor how many hosts there are.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from novacron.core.taint import Taint

__all__ = [
    "Affinity",
    "HostTerm",
    "MachineTerm",
    "Neighbour",
    "PreferredHosts",
    "PreferredMachines",
    "Requirement",
    "Selector",
    "Toleration",
]

WORDS = {"In": "in", "NotIn": "not in", "Gt": ">", "Lt": "<"}


@dataclass(frozen=True, slots=True)
class Requirement:
    """One demand on a label; the operators are Kubernetes' own words."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def met_by(self, value: str | None) -> bool:
        """Say whether a label of this value, None for no such label, meets the demand."""
        if self.operator == "In":
            return value in self.values
        if self.operator == "NotIn":
            return value not in self.values
        if self.operator == "Exists":
            return value is not None
        if self.operator == "DoesNotExist":
            return value is None
        return value is not None and self._compared(value)

    def _compared(self, value: str) -> bool:
        try:
            has, bound = int(value), int(self.values[0])
        except ValueError:
            return False  # a label that is no number is neither greater nor less
        return has > bound if self.operator == "Gt" else has < bound

    def __str__(self) -> str:
        if self.operator == "Exists":
            return self.key
        if self.operator == "DoesNotExist":
            return f"no {self.key}"
        if self.operator == "In" and len(self.values) == 1:
            return f"{self.key}={self.values[0]}"
        values = ", ".join(self.values)
        listed = values if self.operator in ("Gt", "Lt") else f"({values})"
        return f"{self.key} {WORDS[self.operator]} {listed}"


@dataclass(frozen=True, slots=True)
class Selector:
    """Whatever meets all of these demands; without any, everything."""

    requirements: tuple[Requirement, ...] = ()

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Say whether something with these labels is meant."""
        return all(each.met_by(labels.get(each.key)) for each in self.requirements)

    def __str__(self) -> str:
        return ", ".join(map(str, self.requirements))


@dataclass(frozen=True, slots=True)
class HostTerm:
    """Hosts whose labels and whose names meet all of these demands; without any, none."""

    labels: tuple[Requirement, ...] = ()
    names: tuple[Requirement, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it demands nothing, and so means no host."""
        return not self.labels and not self.names

    def met_by(self, name: str, labels: Mapping[str, str]) -> bool:
        """Say whether a host is meant."""
        return not self.is_empty and not self.unmet(name, labels)

    def unmet(self, name: str, labels: Mapping[str, str]) -> tuple[Requirement, ...]:
        """Return the demands that a host does not meet."""
        return (
            *(each for each in self.labels if not each.met_by(labels.get(each.key))),
            *(each for each in self.names if not each.met_by(name)),
        )

    def __str__(self) -> str:
        return " and ".join(map(str, (*self.labels, *self.names))) or "nothing that exists"


@dataclass(frozen=True, slots=True)
class PreferredHosts:
    """Hosts that are better than others, and by how much."""

    weight: int
    term: HostTerm


@dataclass(frozen=True, slots=True)
class MachineTerm:
    """Other machines, and how near is near.

    No selector means no machine. ``topology`` is the host label whose equal values mean
    "together"; None is the host itself. The namespaces are those named and those selected.
    """

    selector: Selector | None
    topology: str | None = None
    namespaces: frozenset[str] = frozenset()
    namespace_selector: Selector | None = None

    def __str__(self) -> str:
        if self.selector is None:
            return "no machine"
        which = f"with {self.selector}" if self.selector.requirements else "of any kind"
        return f"machines {which}"


@dataclass(frozen=True, slots=True)
class PreferredMachines:
    """Other machines whose company is better or worse than none, and by how much."""

    weight: int
    term: MachineTerm


@dataclass(frozen=True, slots=True)
class Affinity:
    """All rules of one machine; ``hosts`` is None where any host will do."""

    hosts: tuple[HostTerm, ...] | None = None
    better_hosts: tuple[PreferredHosts, ...] = ()
    near: tuple[MachineTerm, ...] = ()
    apart: tuple[MachineTerm, ...] = ()
    rather_near: tuple[PreferredMachines, ...] = ()
    rather_apart: tuple[PreferredMachines, ...] = ()

    @property
    def is_about_machines(self) -> bool:
        """Whether other machines matter to it."""
        return bool(self.near or self.apart or self.rather_near or self.rather_apart)


@dataclass(frozen=True, slots=True)
class Toleration:
    """Taints that do not keep a machine away; None is any."""

    key: str | None = None
    value: str | None = None
    effect: str | None = None
    seconds: int | None = None

    def tolerates(self, taint: Taint) -> bool:
        """Say whether this taint is one of them."""
        return (
            (self.key is None or self.key == taint.key)
            and (self.value is None or self.value == taint.value)
            and (self.effect is None or self.effect == taint.effect)
        )


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A machine as others have it for company: how their rules know it, and its own about them."""

    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    affinity: Affinity | None = None
