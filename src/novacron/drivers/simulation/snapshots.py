"""Snapshots of simulated machines: rows beside the machine's own, which go when it does.

A simulated disk has no contents. What a restore brings back is whether the machine runs: with
memory it does, without it is off.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import timedelta

from novacron.core.driver import Accepted
from novacron.core.errors import Rejected
from novacron.core.machine import MachineRef, Power
from novacron.core.snapshot import RestoreOrder, Snapshot, SnapshotOrder
from novacron.drivers.simulation.faults import Operation
from novacron.drivers.simulation.host import SimulatedHost
from novacron.drivers.simulation.store import MachineRow
from novacron.drivers.simulation.turn import EPOCH, Turn

__all__ = ["SimulatedSnapshots"]

MIB = 1024 * 1024
LIST = "SELECT name, created_us, size_bytes, memory, restored FROM snapshots WHERE machine = ?"
ADD = (
    "INSERT INTO snapshots (machine, name, created_us, size_bytes, memory) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT DO NOTHING"
)
REMOVE = "DELETE FROM snapshots WHERE machine = ? AND name = ?"
NOTE = "UPDATE snapshots SET restored = ?3 WHERE machine = ?1 AND name = ?2"


class SimulatedSnapshots(ABC):
    """Satisfies ``Snapshots``; every order is done when the call returns."""

    _host: SimulatedHost

    @abstractmethod
    def _turn(self) -> AbstractContextManager[Turn]:
        """Open a transaction on the file."""

    @abstractmethod
    def _admit(self, operation: Operation, ref: MachineRef) -> None:
        """Refuse what is not for this host, and let a fault strike."""

    async def snapshots(self, ref: MachineRef) -> Sequence[Snapshot]:
        """Tell of every snapshot of a machine."""
        self._admit(Operation.OBSERVE, ref)
        with self._turn() as turn:
            row = turn.find(ref)
            return () if row is None else _listed(turn, row)

    async def take_snapshot(self, ref: MachineRef, order: SnapshotOrder) -> Accepted:
        """Take one; the same name twice makes one."""
        self._admit(Operation.SNAPSHOT, ref)
        with self._turn() as turn:
            row = turn.present(ref)
            turn.require_idle(row)
            memory = order.memory and row.power == Power.ON
            size = self._size_mib(row, memory=memory) * MIB
            turn.store.run(ADD, row.number, order.name, turn.now_us, size, int(memory))
        return Accepted()

    async def restore_snapshot(self, ref: MachineRef, order: RestoreOrder) -> Accepted:
        """Go back to one, once for each request."""
        self._admit(Operation.RESTORE, ref)
        with self._turn() as turn:
            row = turn.present(ref)
            there = {each.name: each for each in _listed(turn, row)}
            target = there.get(order.snapshot)
            if target is None:
                raise Rejected(f"there is no snapshot {order.snapshot}", reason="SnapshotNotFound")
            if target.restored != order.request:
                turn.require_idle(row)
                power = Power.ON if target.memory else Power.OFF
                turn.store.change_power(row.number, power, Operation.RESTORE, turn.now_us)
                turn.store.run(NOTE, row.number, order.snapshot, order.request)
        return Accepted()

    async def remove_snapshot(self, ref: MachineRef, name: str) -> Accepted:
        """Remove one. An absent one is success."""
        self._admit(Operation.DISCARD, ref)
        with self._turn() as turn:
            if (row := turn.find(ref)) is not None:
                turn.store.run(REMOVE, row.number, name)
        return Accepted()

    def _size_mib(self, row: MachineRow, *, memory: bool) -> int:
        used = self._host.usage.of(row.size, Power(row.power))
        return (used.disk_mib or 0) + ((used.memory_mib or 0) if memory else 0)


def _listed(turn: Turn, row: MachineRow) -> list[Snapshot]:
    return [
        Snapshot(
            name,
            EPOCH + timedelta(microseconds=created),
            size,
            bool(memory),
            restored=restored,
        )
        for name, created, size, memory, restored in turn.store.run(LIST, row.number)
    ]
