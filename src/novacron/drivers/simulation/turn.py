"""A turn at the file: one transaction on one host, at one moment.

Holds what the driver's calls have in common; what each call means is the driver's.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from novacron.core.driver import Accepted
from novacron.core.errors import Busy, OutOfCapacity, Rejected
from novacron.core.machine import MachinePlan, MachineRef, Resources
from novacron.drivers.simulation import convert
from novacron.drivers.simulation.faults import Operation
from novacron.drivers.simulation.hardware import hand_over
from novacron.drivers.simulation.host import SimulatedHost
from novacron.drivers.simulation.room import require_addresses, require_growth, require_room
from novacron.drivers.simulation.store import MachineRow, NewMachine, Store
from novacron.drivers.simulation.volumes import Had, Shelf, as_text, from_text, own_mib

__all__ = ["Turn", "microseconds"]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
# Long enough not to spin should the machine come and go, short enough that nobody waits.
GONE_AGAIN = timedelta(milliseconds=100)


def microseconds(moment: datetime) -> int:
    """Return a moment as the file keeps it: whole numbers compare the same everywhere."""
    return (moment - EPOCH) // MICROSECOND


def disk(size_mib: int) -> Resources:
    """Return an amount of nothing but disk."""
    return Resources(disk_mib=size_mib)


@dataclass(frozen=True, slots=True)
class Turn:
    """What one call may read and begin; all of it happens or nothing does."""

    store: Store
    host: SimulatedHost
    host_id: int
    now_us: int

    def find(self, ref: MachineRef) -> MachineRow | None:
        """Find the machine by its UID."""
        return self.store.machine(self.host_id, ref.uid)

    def present(self, ref: MachineRef) -> MachineRow:
        """Find a machine that the caller has seen; if it went away since, tell it to look again."""
        row = self.find(ref)
        if row is None:
            raise Busy(f"machine {ref.name} is not on host {self.host.name} any more", GONE_AGAIN)
        return row

    def require_idle(self, row: MachineRow) -> None:
        """Refuse an order that contradicts the operation under way."""
        if row.change is not None:
            message = f"host {self.host.name} is at work on machine {row.name} ({row.change})"
            raise Busy(message, self._time_left(row))

    def accepted_before(self, row: MachineRow) -> Accepted:
        """Answer an order that was given before: nothing begins, what is under way goes on."""
        return Accepted(self._time_left(row))

    @property
    def shelf(self) -> Shelf:
        """The host's volumes."""
        return Shelf(self.store, self.host, self.host_id)

    def add(self, plan: MachinePlan) -> Accepted:
        """Begin to make a machine, if the host has room and addresses for it."""
        ref = plan.ref
        volumes = self.shelf.fitted(ref, plan.volumes or (), (), OutOfCapacity)
        self.shelf.take(ref, volumes)
        books = self.store.host(self.host_id)
        require_room(self.host, books.held, plan.resources + disk(own_mib(volumes)))
        slots = self.store.take_slots(self.host_id, books, convert.dynamic_nics(plan))
        require_addresses(self.host, slots)
        addresses = convert.addresses_of(plan, self.host_id, slots)
        new = NewMachine(
            *(ref.uid, ref.namespace, ref.name, plan.resources, addresses, slots),
            volumes=as_text(volumes),
            volumes_mib=own_mib(volumes),
        )
        delay = self.host.delays.create
        self.store.add(self.host_id, new, made_us=self.end(delay) if delay else None)
        if plan.devices:
            hand_over(self.store, self.host, self.host_id, plan)
        return Accepted(delay)

    def volumes(self, row: MachineRow, plan: MachinePlan) -> tuple[Had, ...]:
        """Return the volumes the machine has once the plan is carried out."""
        before = from_text(row.volumes)
        if plan.volumes is None:
            return before
        return self.shelf.fitted(plan.ref, plan.volumes, before, Rejected)

    def grow(self, row: MachineRow, plan: MachinePlan, volumes: tuple[Had, ...]) -> Accepted:
        """Begin to change a machine's size, if the host has room for what is more."""
        self.shelf.take(plan.ref, volumes)
        books = self.store.host(self.host_id)
        more = disk(max(own_mib(volumes) - row.volumes_mib, 0))
        require_growth(self.host, books.held, row, plan.resources + more)
        delay = self.host.delays.resize
        have = (as_text(volumes), own_mib(volumes))
        self.store.change_size(row.number, plan.resources, Operation.RESIZE, self.end(delay), have)
        return Accepted(delay)

    def end(self, delay: timedelta) -> int:
        """Return the moment at which an operation ends that begins now."""
        return self.now_us + delay // MICROSECOND

    def _time_left(self, row: MachineRow) -> timedelta:
        ends_us = self.now_us if row.ends_us is None else row.ends_us
        return timedelta(microseconds=ends_us - self.now_us)
