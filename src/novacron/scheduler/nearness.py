"""How near other machines are to each host, as the rules of one machine and of others ask.

Rows are together when their hosts carry the same value of a label, or are the same host.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from novacron.core.affinity import Affinity, MachineTerm, Neighbour
from novacron.core.machine import Machine
from novacron.scheduler.company import Bearing, Term, carried
from novacron.scheduler.labels import NOWHERE

if TYPE_CHECKING:
    from novacron.scheduler.table import HostTable

__all__ = ["CompanyView", "Nearness", "Wish", "company_view"]

NOTHING = Affinity()


@dataclass(frozen=True, slots=True, eq=False)
class Nearness:
    """How many machines of a term are together with each row, and which rows can tell.

    ``first`` says that there is no such machine anywhere and that the asking one would be the
    first: it would wait for ever, were it not allowed to begin.
    """

    term: MachineTerm
    machines: NDArray[np.int64]
    known: NDArray[np.bool_]
    first: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Wish:
    """Machines that it is better to be near to, or else to be apart from."""

    weight: int
    towards: bool
    machines: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class CompanyView:
    """All that rules about machines have to do with one machine's placement.

    ``repelled`` are the terms of machines already placed that want to be apart from it.
    """

    near: tuple[Nearness, ...]
    apart: tuple[Nearness, ...]
    repelled: tuple[Nearness, ...]
    wishes: tuple[Wish, ...]


def company_view(table: "HostTable", machine: Machine) -> CompanyView | None:
    """Look at the company a machine would have; None when no rule has to do with it."""
    about = machine.affinity if machine.affinity and machine.affinity.is_about_machines else None
    if about is None and not table.company.has_terms:
        return None
    return _Look(table, machine, about or NOTHING).view()


class _Look:
    """One machine's look around; where it is already, it does not count itself."""

    def __init__(self, table: "HostTable", machine: Machine, rules: Affinity) -> None:
        self._table = table
        self._company = table.company
        self._rules = rules
        self._me = machine.neighbour
        held = table.held(machine.uid)
        self._placed: Neighbour | None = held.neighbour if held else None
        self._row = table.any_row(held.host) if held else None

    def view(self) -> CompanyView | None:
        repelled, wishes = [], [*self._own_wishes()]
        for term in self._company.selecting(self._me):
            for (bearing, weight), rows in term.carriers.items():
                if bearing == Bearing.APART:
                    repelled.append(self._nearness(term.value, self._others(term, bearing, rows)))
                elif bearing != Bearing.NEAR:
                    near = self._nearness(term.value, self._others(term, bearing, rows, weight))
                    towards = bearing == Bearing.RATHER_NEAR
                    wishes.append(Wish(weight, towards, near.machines))
        rules = self._rules
        if not (rules.near or rules.apart or repelled or wishes):
            return None
        return CompanyView(
            tuple(self._asked(term) for term in rules.near),
            tuple(self._asked(term) for term in rules.apart),
            tuple(repelled),
            tuple(wishes),
        )

    def _own_wishes(self) -> Iterator[Wish]:
        for wish in self._rules.rather_near:
            yield Wish(wish.weight, True, self._asked(wish.term).machines)  # noqa: FBT003
        for wish in self._rules.rather_apart:
            yield Wish(wish.weight, False, self._asked(wish.term).machines)  # noqa: FBT003

    def _asked(self, value: MachineTerm) -> Nearness:
        term = self._company.term(value)
        rows: Mapping[int, int] = term.selected
        if self._placed is not None and self._company.selects(value, self._placed):
            rows = self._less_me(rows)
        first = not rows and self._company.selects(value, self._me)
        return self._nearness(value, rows, first=first)

    def _others(
        self, term: Term, bearing: int, rows: Mapping[int, int], weight: int = 0
    ) -> Mapping[int, int]:
        if self._placed is None:
            return rows
        mine = ((bearing, weight), term.value) in carried(self._placed.affinity)
        return self._less_me(rows) if mine else rows

    def _less_me(self, rows: Mapping[int, int]) -> Mapping[int, int]:
        assert self._row is not None
        return Counter(rows) - Counter({self._row: 1})

    def _nearness(
        self, value: MachineTerm, rows: Mapping[int, int], *, first: bool = False
    ) -> Nearness:
        size = self._table.size
        here = np.zeros(size, dtype=np.int64)
        if rows:
            here[list(rows)] = list(rows.values())
        if value.topology is None:
            return Nearness(value, here, np.ones(size, dtype=np.bool_), first)
        numbers = self._table.topology(value.topology)
        known = numbers != NOWHERE
        if not rows:
            return Nearness(value, here, known, first)
        # One place more than there are values, for the rows that have none.
        sums = np.bincount(numbers + 1, weights=here).astype(np.int64)
        sums[0] = 0
        return Nearness(value, sums[numbers + 1], known, first)
