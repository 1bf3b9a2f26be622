"""The host table: what every host has free, as arrays from the first day.

A filter or a score looks at all hosts in one operation over a column, so five thousand hosts
cost little more than five. Every change touches one row. A machine counts once, wherever it
was last said to be, and also on a host nobody has declared yet: operators restart, and
machines are often heard of before their hosts are.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from novacron.core.affinity import Neighbour, Requirement, Toleration
from novacron.core.host import Host
from novacron.core.machine import Resources
from novacron.core.offer import Offer
from novacron.core.resources import Share
from novacron.scheduler.company import Company
from novacron.scheduler.cpus import CpuIndex
from novacron.scheduler.devices import DeviceBooks
from novacron.scheduler.labels import LabelIndex
from novacron.scheduler.storage import StorageBooks
from novacron.scheduler.taints import REPELLING, TaintIndex

__all__ = ["CPU", "DISK", "MEMORY", "Held", "HostTable", "Mask", "shares_of"]

Mask = NDArray[np.bool_]

# The rows of the two-dimensional columns.
CPU, MEMORY, DISK = 0, 1, 2

FIRST_SIZE = 64
NO_HOST = Host("", Resources())


class Held(NamedTuple):
    """What one machine takes, and of which host; devices by their addresses there."""

    host: str
    resources: Resources
    neighbour: Neighbour | None = None
    devices: tuple[str, ...] = ()


def shares_of(holder: str, resources: Resources) -> tuple[Share, ...]:
    """Return what a machine takes of each storage, its host's own among them.

    A holder is a machine by its UID; what follows a slash says where else it holds something.
    """
    if not resources.disk_mib:
        return resources.shares
    return (Share("", holder.partition("/")[0], resources.disk_mib), *resources.shares)


class HostTable:
    """All hosts, one row each. The columns are for reading; only the methods change them.

    Rows that belong to no declared host are ``vacant``: never used, left by a removed host,
    or kept for machines whose host is not declared (yet).
    """

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}
        self._unused = list(range(FIRST_SIZE - 1, -1, -1))
        self._hosts: list[Host | None] = [None] * FIRST_SIZE
        self._held: dict[str, Held] = {}
        self._holders: dict[int, set[str]] = {}
        self._labels = LabelIndex()
        self._offers = LabelIndex()
        self._taints = TaintIndex()
        self.cpus = CpuIndex()
        self.company = Company()
        self.devices = DeviceBooks()
        self.storage = StorageBooks()
        self._snapshot: tuple[Host | None, ...] | None = None
        self._ranks: NDArray[np.int64] | None = None
        self.free = np.zeros((3, FIRST_SIZE), dtype=np.int64)
        self.allocatable = np.zeros((3, FIRST_SIZE), dtype=np.int64)
        self.machines = np.zeros(FIRST_SIZE, dtype=np.int64)
        self.vacant: Mask = np.ones(FIRST_SIZE, dtype=np.bool_)
        self.unready: Mask = np.zeros(FIRST_SIZE, dtype=np.bool_)
        self.cordoned: Mask = np.zeros(FIRST_SIZE, dtype=np.bool_)
        self.tainted: Mask = np.zeros(FIRST_SIZE, dtype=np.bool_)

    @property
    def size(self) -> int:
        """How many rows the columns have, vacant ones included."""
        return self.vacant.size

    @property
    def hosts(self) -> tuple[Host | None, ...]:
        """The declared host of each row as it is now; later changes do not show in it."""
        if self._snapshot is None:
            self._snapshot = tuple(self._hosts)
        return self._snapshot

    @property
    def ranks(self) -> NDArray[np.int64]:
        """The place of each row's host in the order of names, which breaks ties."""
        if self._ranks is None:
            self._ranks = np.zeros(self.size, dtype=np.int64)
            for rank, name in enumerate(sorted(self._rows)):
                self._ranks[self._rows[name]] = rank
        return self._ranks

    def row(self, host: str) -> int | None:
        """Return the row of a declared host."""
        row = self._rows.get(host)
        return None if row is None or self._hosts[row] is None else row

    def any_row(self, host: str) -> int | None:
        """Return the row of a host that is declared or has machines."""
        return self._rows.get(host)

    def held(self, uid: str) -> Held | None:
        """Return what the machine takes."""
        return self._held.get(uid)

    def lacking(self, selector: Mapping[str, str]) -> Mask:
        """Return which rows lack any of these labels."""
        return self._labels.lacking(selector, self.size)

    def meeting(self, requirement: Requirement) -> Mask:
        """Return which rows' labels meet a demand."""
        return self._labels.meeting(requirement, self.size)

    def topology(self, key: str) -> NDArray[np.int64]:
        """Return a number for each row, equal where hosts are together."""
        return self._labels.topology(key, self.size)

    def repelling(self, tolerations: Sequence[Toleration]) -> Mask:
        """Return which rows have taints that keep a machine away."""
        return self._taints.repelling(tolerations, self.size)

    def asking(self, tolerations: Sequence[Toleration]) -> NDArray[np.int64] | None:
        """Return how many taints only ask a machine to stay away; None where none does."""
        return self._taints.asking(tolerations, self.size)

    def offering(self, offer: Offer) -> Mask:
        """Return which rows have something, or cannot tell what they have of that sort."""
        named, any_ = (Requirement(str(each), "Exists") for each in (offer, offer.any))
        return self._offers.meeting(named, self.size) | self._offers.meeting(any_, self.size)

    def upsert(self, host: Host) -> None:
        """Declare a host, or declare it anew; what machines take of it stays taken."""
        row = self._row_for(host.name)
        old = self._hosts[row]
        if old == host:
            return
        self._mark(row, old or NO_HOST, host)
        self._set_room(row, host.allocatable)
        self.vacant[row] = False
        self.unready[row] = not host.ready
        self.cordoned[row] = host.unschedulable
        self.tainted[row] = any(taint.effect in REPELLING for taint in host.taints)
        self._hosts[row] = host
        self._snapshot = None

    def remove(self, name: str) -> None:
        """Forget a host; its machines still count there, should it be declared again."""
        row = self.row(name)
        if row is None:
            return
        self._mark(row, self._hosts[row] or NO_HOST, NO_HOST)
        self.vacant[row] = True
        self._hosts[row] = None
        self._snapshot = None
        self._free_row(name, row)

    def take(
        self,
        uid: str,
        host: str,
        resources: Resources,
        *,
        neighbour: Neighbour | None = None,
        devices: tuple[str, ...] = (),
    ) -> None:
        """Count the machine on the host with this amount, and nowhere else any more."""
        now = Held(host, resources, neighbour, devices)
        before = self._held.get(uid)
        if before == now:
            return
        self._held[uid] = now
        self._count(uid, now, 1)
        if before is not None:
            self._count(uid, before, -1)
        self._holders.setdefault(self._rows[host], set()).add(uid)

    def release(self, uid: str) -> None:
        """Count the machine no longer."""
        before = self._held.pop(uid, None)
        if before is not None:
            self._count(uid, before, -1)

    def _count(self, uid: str, held: Held, times: int) -> None:
        row = self._row_for(held.host)
        self.free[CPU, row] -= times * held.resources.vcpus
        self.free[MEMORY, row] -= times * held.resources.memory_mib
        self.free[DISK, row] -= times * held.resources.disk_mib
        self.machines[row] += times
        if times < 0:
            self._holders[row].discard(uid)
        if held.neighbour is not None:
            (self.company.add if times > 0 else self.company.remove)(held.neighbour, row)
        if held.devices:
            (self.devices.take if times > 0 else self.devices.give_back)(row, held.devices)
        if self.storage.knows(row):
            shares = shares_of(uid, held.resources)
            (self.storage.take if times > 0 else self.storage.give_back)(row, shares)
        self._free_row(held.host, row)

    def _mark(self, row: int, old: Host, new: Host) -> None:
        self._labels.change(row, old.labels, new.labels)
        self._taints.change(row, old.taints, new.taints)
        self.cpus.change(row, old.cpu, new.cpu)
        if old.offers != new.offers:
            was, now = (dict.fromkeys(map(str, each.offers), "") for each in (old, new))
            self._offers.change(row, was, now)
        if old.devices != new.devices:
            self.devices.declare(row, new.devices)
        # What is in a place stays there when its host is forgotten, and others may see the place.
        if new is not NO_HOST:
            self.storage.declare(row, new.storage, self._shares_on(row))

    def _shares_on(self, row: int) -> Iterator[Share]:
        for uid in self._holders.get(row, ()):
            yield from shares_of(uid, self._held[uid].resources)

    def _set_room(self, row: int, allocatable: Resources) -> None:
        room = (allocatable.vcpus, allocatable.memory_mib, allocatable.disk_mib)
        self.free[:, row] += np.array(room, dtype=np.int64) - self.allocatable[:, row]
        self.allocatable[:, row] = room

    def _row_for(self, name: str) -> int:
        row = self._rows.get(name)
        if row is None:
            if not self._unused:
                self._grow()
            row = self._rows[name] = self._unused.pop()
            self._ranks = None
        return row

    def _free_row(self, name: str, row: int) -> None:
        """Give a row back that neither a host nor a machine needs."""
        if self._hosts[row] is None and not self.machines[row]:
            del self._rows[name]
            self._holders.pop(row, None)
            self.storage.declare(row, (), ())
            self._unused.append(row)
            self._ranks = None

    def _grow(self) -> None:
        """Add half as many rows again, so that many hosts cost few copies and little slack."""
        size = self.size
        more = size // 2
        self._unused = list(range(size + more - 1, size - 1, -1))
        self._hosts += [None] * more
        self._snapshot = self._ranks = None
        self.free = np.pad(self.free, ((0, 0), (0, more)))
        self.allocatable = np.pad(self.allocatable, ((0, 0), (0, more)))
        self.machines = np.pad(self.machines, (0, more))
        self.vacant = np.pad(self.vacant, (0, more), constant_values=True)
        self.unready = np.pad(self.unready, (0, more))
        self.cordoned = np.pad(self.cordoned, (0, more))
        self.tainted = np.pad(self.tainted, (0, more))
