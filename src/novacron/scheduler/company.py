"""Which machines are together: who is on which host, and whose rules are about whom.

Everything is counted as machines come and go, so that a decision costs what there are of hosts
and rules, however many machines run. A machine is known by its profile, its namespace and
labels; a rule's term counts, row by row, the machines it selects and those that carry it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from novacron.core.affinity import Affinity, MachineTerm, Neighbour, Requirement

__all__ = ["Bearing", "Company", "Profile", "Term", "carried"]

Label = tuple[str, str]
Rows = Counter[int]

# Terms that only machines not yet placed have are forgotten beyond this number.
TERMS_KEPT = 1024


class Bearing:
    """In which way a machine carries a term: it insists on it, or has it as a wish."""

    NEAR, APART, RATHER_NEAR, RATHER_APART = range(4)


class Profile:
    """Machines that all rules see alike, and where they are."""

    __slots__ = ("labels", "namespace", "rows", "selected_by")

    def __init__(self, namespace: str, labels: Mapping[str, str]) -> None:
        self.namespace = namespace
        self.labels = labels
        self.rows: Rows = Counter()
        self.selected_by: set[Term] = set()


class Term:
    """One term of somebody's rules: where the machines it selects are, and those that carry it.

    Carriers are counted by their bearing and weight.
    """

    __slots__ = ("carriers", "selected", "value")

    def __init__(self, value: MachineTerm) -> None:
        self.value = value
        self.selected: Rows = Counter()
        self.carriers: dict[tuple[int, int], Rows] = {}


class Company:
    """All placed machines, as rules about machines see them."""

    def __init__(self) -> None:
        self._profiles: dict[tuple[str, frozenset[Label]], Profile] = {}
        self._by_label: dict[Label, set[Profile]] = {}
        self._by_namespace: dict[str, set[Profile]] = {}
        self._terms: dict[MachineTerm, Term] = {}
        self._terms_by_label: dict[Label, set[Term]] = {}
        self._other_terms: set[Term] = set()
        self._namespaces: dict[str, Mapping[str, str]] = {}

    @property
    def has_terms(self) -> bool:
        """Whether anybody has rules about machines."""
        return bool(self._terms)

    def add(self, neighbour: Neighbour, row: int) -> None:
        """Count a machine on a row."""
        profile = self._profile(neighbour)
        profile.rows[row] += 1
        for term in profile.selected_by:
            term.selected[row] += 1
        for bearing, value in carried(neighbour.affinity):
            self.term(value).carriers.setdefault(bearing, Counter())[row] += 1

    def remove(self, neighbour: Neighbour, row: int) -> None:
        """Count a machine no longer."""
        profile = self._profile(neighbour)
        _less(profile.rows, row)
        for term in profile.selected_by:
            _less(term.selected, row)
        if not profile.rows:
            self._drop(profile)
        for bearing, value in carried(neighbour.affinity):
            carriers = self._terms[value].carriers
            _less(carriers[bearing], row)
            if not carriers[bearing]:
                del carriers[bearing]

    def term(self, value: MachineTerm) -> Term:
        """Return a term with its counts, counting all there is if it is new."""
        found = self._terms.get(value)
        if found is None:
            if len(self._terms) >= TERMS_KEPT:
                self._forget_idle_terms()
            found = self._terms[value] = Term(value)
            for label in _handles(value):
                self._terms_by_label.setdefault(label, set()).add(found)
            if not _handles(value):
                self._other_terms.add(found)
            for profile in self._candidates(value):
                self._relate(found, profile)
        return found

    def selecting(self, neighbour: Neighbour) -> Iterable[Term]:
        """Return all terms that select a machine, placed or not."""
        profile = self._profiles.get(_key(neighbour))
        if profile is not None:
            return profile.selected_by
        return [term for term in self._terms_for(neighbour) if self.selects(term.value, neighbour)]

    def selects(self, term: MachineTerm, machine: Neighbour | Profile) -> bool:
        """Say whether a term is about a machine."""
        return (
            term.selector is not None
            and self._covers(term, machine.namespace)
            and term.selector.selects(machine.labels)
        )

    def set_namespace(self, name: str, labels: Mapping[str, str] | None) -> bool:
        """Say how a namespace is labelled; return whether that can matter to anybody."""
        if self._namespaces.get(name) == labels:
            return False
        if labels is None:
            self._namespaces.pop(name, None)
        else:
            self._namespaces[name] = labels
        chosen = [term for term in self._terms.values() if term.value.namespace_selector]
        for term in chosen:
            for profile in self._by_namespace.get(name, ()):
                self._part(term, profile)
                self._relate(term, profile)
        return bool(chosen)

    def _covers(self, term: MachineTerm, namespace: str) -> bool:
        if namespace in term.namespaces:
            return True
        selector = term.namespace_selector
        return selector is not None and selector.selects(self._namespaces.get(namespace, {}))

    def _profile(self, neighbour: Neighbour) -> Profile:
        key = _key(neighbour)
        profile = self._profiles.get(key)
        if profile is None:
            profile = self._profiles[key] = Profile(neighbour.namespace, neighbour.labels)
            self._by_namespace.setdefault(neighbour.namespace, set()).add(profile)
            for label in neighbour.labels.items():
                self._by_label.setdefault(label, set()).add(profile)
            for term in self._terms_for(neighbour):
                self._relate(term, profile)
        return profile

    def _drop(self, profile: Profile) -> None:
        del self._profiles[_key(profile)]
        _discard(self._by_namespace, profile.namespace, profile)
        for label in profile.labels.items():
            _discard(self._by_label, label, profile)

    def _relate(self, term: Term, profile: Profile) -> None:
        if self.selects(term.value, profile):
            profile.selected_by.add(term)
            term.selected.update(profile.rows)

    def _part(self, term: Term, profile: Profile) -> None:
        if term in profile.selected_by:
            profile.selected_by.discard(term)
            for row, count in profile.rows.items():
                _less(term.selected, row, count)

    def _terms_for(self, machine: Neighbour) -> Iterator[Term]:
        """Return the terms that can be about a machine, found by its labels."""
        if self._terms:
            yield from self._other_terms
            found: set[Term] = set()
            for label in machine.labels.items():
                found |= self._terms_by_label.get(label, set())
            yield from found

    def _candidates(self, value: MachineTerm) -> Iterable[Profile]:
        """Return the profiles that a term can be about, found by the labels it asks for."""
        handles = _handles(value)
        if not handles:
            return list(self._profiles.values())
        return set().union(*(self._by_label.get(label, set()) for label in handles))

    def _forget_idle_terms(self) -> None:
        for value, term in list(self._terms.items()):
            if not term.carriers:
                del self._terms[value]
                self._other_terms.discard(term)
                for label in _handles(value):
                    _discard(self._terms_by_label, label, term)
                for profile in self._candidates(value):
                    profile.selected_by.discard(term)


def _key(machine: Neighbour | Profile) -> tuple[str, frozenset[Label]]:
    return machine.namespace, frozenset(machine.labels.items())


def carried(affinity: Affinity | None) -> Iterator[tuple[tuple[int, int], MachineTerm]]:
    """Return the terms of a machine's rules, each with its bearing and weight."""
    if affinity is None:
        return
    for term in affinity.near:
        yield (Bearing.NEAR, 0), term
    for term in affinity.apart:
        yield (Bearing.APART, 0), term
    for wish in affinity.rather_near:
        yield (Bearing.RATHER_NEAR, wish.weight), wish.term
    for wish in affinity.rather_apart:
        yield (Bearing.RATHER_APART, wish.weight), wish.term


def _handles(term: MachineTerm) -> tuple[Label, ...]:
    """Return labels of which a machine must have one to be meant, where that is so."""
    asked: tuple[Requirement, ...] = term.selector.requirements if term.selector else ()
    for each in asked:
        if each.operator == "In":
            return tuple((each.key, value) for value in each.values)
    return ()


def _less(rows: Rows, row: int, count: int = 1) -> None:
    rows[row] -= count
    if not rows[row]:
        del rows[row]


def _discard(index: dict, key: object, member: object) -> None:  # type: ignore[type-arg]
    index[key].discard(member)
    if not index[key]:
        del index[key]
