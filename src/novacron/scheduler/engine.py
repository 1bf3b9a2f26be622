"""The engine: asks every filter, adds up every score, and decides.

The same table and machine give the same decision, whatever order hosts came in: ties go to
the first name.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from novacron.core.devices import HostDevice
from novacron.core.host import Host
from novacron.core.machine import Machine, Resources
from novacron.scheduler.cpu_filter import kept_cpu
from novacron.scheduler.filter import Asked, Refused
from novacron.scheduler.filters import FILTERS, LASTING, WISHES
from novacron.scheduler.nearness import company_view
from novacron.scheduler.scores import SCORES, Ratings
from novacron.scheduler.storage_filter import named
from novacron.scheduler.table import CPU, DISK, MEMORY, HostTable, Mask, shares_of

__all__ = [
    "FITS",
    "Decision",
    "Nowhere",
    "Placed",
    "Survey",
    "choose",
    "devices_on",
    "fits",
    "overdrawn",
    "suited",
    "unwelcome",
]

FITS, NO_HOST = len(FILTERS), len(FILTERS) + 1


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """What the filters said of every host, and all that is needed to say why later.

    A verdict is the number of the first filter that refused the row's host, or FITS. Nothing
    here changes with the table: a decision can be explained after others were made.
    """

    asked: Asked
    hosts: tuple[Host | None, ...]
    free: NDArray[np.int64]
    verdicts: NDArray[np.int8]

    @property
    def known(self) -> int:
        """How many hosts were looked at."""
        return int((self.verdicts != NO_HOST).sum())

    @property
    def fitting(self) -> int:
        """How many hosts could take the machine."""
        return int((self.verdicts == FITS).sum())


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """The machine goes on this host and gets these devices of it.

    Every score that had something to say rated all rows; ``total`` is their weighted mean, and
    means something only for rows that fit.
    """

    host: str
    row: int
    devices: tuple[HostDevice, ...]
    total: Ratings
    ratings: Mapping[str, Ratings]
    survey: Survey

    @property
    def score(self) -> float:
        """The weighted mean of the chosen host's ratings."""
        return float(self.total[self.row])

    @property
    def scores(self) -> Mapping[str, float]:
        """The chosen host's ratings."""
        return {name: float(rating[self.row]) for name, rating in self.ratings.items()}


@dataclass(frozen=True, slots=True, eq=False)
class Nowhere:
    """No host can take the machine; the survey knows each host's reason."""

    survey: Survey


Decision = Placed | Nowhere


def choose(table: HostTable, machine: Machine) -> Decision:
    """Choose the host for a machine.

    Nothing is taken: that is the caller's next call. A machine that is placed already is not
    in its own way but for the room it has: to be placed anew on its own host it is released
    before.
    """
    survey = _survey(table, machine)
    fitting = survey.verdicts == FITS
    if not fitting.any():
        return Nowhere(survey)
    return _best(table, survey, fitting)


def devices_on(table: HostTable, machine: Machine, host: str) -> tuple[HostDevice, ...] | None:
    """Choose the devices a machine gets on a host; None when it has not enough of them free."""
    row = table.row(host)
    if not machine.wanted_devices or row is None:
        return None if machine.wanted_devices else ()
    return table.devices.choose(machine.wanted_devices, row, _own_devices(table, machine))


def _own_devices(table: HostTable, machine: Machine) -> tuple[int, frozenset[str]] | None:
    held = table.held(machine.uid)
    row = table.any_row(held.host) if held else None
    return None if held is None or row is None else (row, frozenset(held.devices))


def _asked(table: HostTable, machine: Machine) -> Asked:
    company, cpu = company_view(table, machine), kept_cpu(table, machine)
    storage = table.storage.view(shares_of(machine.uid, machine.wanted), table.size)
    if not machine.wanted_devices:
        return Asked(machine, company, cpu=cpu, storage=storage)
    own = _own_devices(table, machine)
    view = table.devices.view(machine.wanted_devices, table.size, own)
    return Asked(machine, company, view, cpu, storage)


def _survey(table: HostTable, machine: Machine) -> Survey:
    asked = _asked(table, machine)
    verdicts = np.full(table.size, FITS, dtype=np.int8)
    # Backwards, so that the first filter to refuse a host has the last word.
    for number in range(len(FILTERS) - 1, -1, -1):
        refused = FILTERS[number].refuses(table, asked)
        if refused is not None:
            np.putmask(verdicts, refused, number)
    np.putmask(verdicts, table.vacant, NO_HOST)
    return Survey(asked, table.hosts, table.free.copy(), verdicts)


def _best(table: HostTable, survey: Survey, fitting: Mask) -> Placed:
    wanted = survey.asked.machine.wanted
    size = np.array([[wanted.vcpus], [wanted.memory_mib], [wanted.disk_mib]], dtype=np.int64)
    left: Ratings = (table.free - size) / np.maximum(table.allocatable, 1)
    ratings: dict[str, Ratings] = {}
    total, weight = np.zeros(table.size), 0.0
    for score in SCORES:
        rating = score.rate(table, survey.asked, left)
        if rating is not None:
            ratings[score.name] = rating
            total += score.weight * rating
            weight += score.weight
    total /= weight
    total[~fitting] = -1.0
    ties = np.flatnonzero(total == total.max())
    row = int(ties[table.ranks[ties].argmin()])
    host = survey.hosts[row]
    assert host is not None, "a vacant row never fits"
    devices = devices_on(table, survey.asked.machine, host.name)
    assert devices is not None, "the filter looked for the same devices"
    return Placed(host.name, row, devices, total, ratings, survey)


def unwelcome(table: HostTable, machine: Machine, host: str) -> str | None:
    """Say in which way a host is not what the machine's owner wants, or None when it is.

    Whether there is room, or new machines are let in, is of no concern to one that is there.
    """
    row = table.row(host)
    if row is None:
        return None
    asked = _asked(table, machine)
    for wish in (each for each in FILTERS if each.name in WISHES):
        refused = wish.refuses(table, asked)
        if refused is not None and refused[row]:
            there = table.hosts[row]
            assert there is not None
            return wish.phrase(asked, Refused([there], np.array([row]), table.free[:, [row]]))
    return None


def suited(table: HostTable, machine: Machine) -> frozenset[str]:
    """Return the hosts that have what a machine asks for of what seldom changes.

    Room, cordons, taints and the company of other machines come and go.
    """
    asked, mask = Asked(machine), ~table.vacant
    for each in LASTING:
        refused = each.refuses(table, asked)
        if refused is not None:
            mask &= ~refused
    found = (table.hosts[row] for row in np.flatnonzero(mask))
    return frozenset(host.name for host in found if host is not None)


def fits(table: HostTable, uid: str, host: str, size: Resources) -> str | None:
    """Say why a machine cannot have this size where it is, or None when it can.

    Only what grows needs room. Labels, taints and cordons keep machines from coming, not
    those that are there from growing.
    """
    row = table.row(host)
    if row is None:
        return f"host {host} is not declared"
    held = table.held(uid)
    has = held.resources if held is not None and held.host == host else Resources()
    had = {column: amount for _, column, amount in _amounts(has)}
    for what, column, amount in _amounts(size):
        free, asked = int(table.free[column, row]), amount - had[column]
        if asked > 0 and asked > free:
            unit = "" if column == CPU else " MiB"
            return f"host {host} lacks {what} ({asked}{unit} more asked, {max(free, 0)} free)"
    lacking = table.storage.lack(row, shares_of(uid, size))
    if lacking is None:
        return None
    storage_class, more, left = lacking
    return f"host {host} lacks {named(storage_class)} ({more} MiB more asked, {left} free)"


def overdrawn(table: HostTable, holder: str) -> str | None:
    """Say of what a host was promised more than it has, where a holder takes some of it."""
    held = table.held(holder)
    row = table.row(held.host) if held else None
    if held is None or row is None or table.unready[row]:
        return None
    for what, column, amount in _amounts(held.resources):
        if amount and table.free[column, row] < 0:
            return f"host {held.host} has less {what} than was promised of it"
    if (address := table.devices.shared(row, held.devices)) is not None:
        return f"device {address} of host {held.host} was promised twice"
    lacking = table.storage.overdrawn(row, shares_of(holder, held.resources))
    if lacking is None:
        return None
    return f"host {held.host} has less {named(lacking)} than was promised of it"


def _amounts(size: Resources) -> tuple[tuple[str, int, int], ...]:
    return (
        ("CPU", CPU, size.vcpus),
        ("memory", MEMORY, size.memory_mib),
        ("disk", DISK, size.disk_mib),
    )
