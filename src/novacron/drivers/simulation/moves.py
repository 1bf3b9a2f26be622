"""Simulated machines that move from one host of the file to another."""

from collections.abc import Mapping
from datetime import timedelta

from novacron.core.errors import Unsupported
from novacron.core.machine import MachinePlan, MachineRef
from novacron.core.migration import Destination, Luggage, require_encryption
from novacron.core.move import MovePolicy, MoveProgress
from novacron.drivers.simulation.faults import Operation
from novacron.drivers.simulation.hardware import hand_over_anew, require_devices
from novacron.drivers.simulation.host_file import HostFile
from novacron.drivers.simulation.room import require_room
from novacron.drivers.simulation.store import MachineRow
from novacron.drivers.simulation.turn import Turn

__all__ = ["SimulatedMoves"]

FILE = "file"
TLS = "tls"
WHOLE = 100
MIB = 2**20


class SimulatedMoves(HostFile):
    """Satisfies ``LiveMigration``; all hosts of one file share their storage."""

    async def pack(self, ref: MachineRef) -> Luggage:
        """Tell which file it is in, or was."""
        del ref
        return Luggage({FILE: str(self._path)})

    async def send(self, ref: MachineRef, to: Destination, policy: MovePolicy) -> None:
        """Begin to move the machine, which takes as long as this host says."""
        self._admit(Operation.MOVE, ref)
        self._require_same_file(to.details)
        able = {self._host.name: self._host.migration_tls, to.host: bool(to.details[TLS])}
        require_encryption(policy, able)
        with self._turn() as turn:
            row = turn.present(ref)
            if row.change == Operation.MOVE:
                return
            turn.require_idle(row)
            turn.store.send(
                row.number, turn.store.host_id(to.host), turn.end(self._host.delays.move)
            )

    async def movement(self, ref: MachineRef) -> MoveProgress | None:
        """Tell how much of the time has passed."""
        with self._turn() as turn:
            row = turn.find(ref)
            return self._progress(turn, row) if row and row.change == Operation.MOVE else None

    async def cancel_move(self, ref: MachineRef) -> None:
        """Have the machine stay."""
        with self._turn() as turn:
            row = turn.find(ref)
            if row is not None and row.change == Operation.MOVE:
                turn.store.stay(row.number)

    async def clear_out(self, ref: MachineRef, kept: Luggage, *, was_home: bool) -> None:
        """Remove a machine that is on another host now."""
        del kept, was_home
        self._admit(Operation.DELETE, ref)
        with self._turn() as turn:
            row = turn.find(ref)
            if row is not None:
                turn.store.remove(row.number, Operation.DELETE, turn.now_us)

    async def welcome(self, plan: MachinePlan, luggage: Luggage) -> Destination:
        """Say that there is room."""
        self._admit(Operation.MOVE, plan.ref)
        self._require_same_file(luggage.contents)
        with self._turn() as turn:
            if turn.find(plan.ref) is None:
                held = turn.store.host(turn.host_id).held
                if not self._comes_here(turn, plan.ref):
                    require_room(self._host, held, plan.resources)
                    if plan.devices:
                        require_devices(turn.store, self._host, turn.host_id, plan)
        tls = self._host.migration_tls
        return Destination(self._host.name, {FILE: str(self._path), TLS: tls})

    async def arrived(self, plan: MachinePlan, luggage: Luggage | None) -> MoveProgress:
        """Tell what it took; a machine that came has all it had but devices of its host."""
        del luggage
        with self._turn() as turn:
            row = turn.present(plan.ref)
            if plan.devices:
                hand_over_anew(turn.store, self._host, turn.host_id, plan)
        return MoveProgress(WHOLE, row.memory_mib * MIB, 0)

    async def out_of_reach(self, plan: MachinePlan) -> str | None:
        """Return the machine's disks where the file does not have it, on whichever host."""
        with self._turn() as turn:
            return None if turn.store.anywhere(plan.ref.uid) is not None else "its disks"

    def _comes_here(self, turn: Turn, ref: MachineRef) -> bool:
        """Say whether a machine is on its way to this host, and so has its room here already."""
        number = turn.store.anywhere(ref.uid)
        return number is not None and turn.store.target(number) == self._host.name

    def _progress(self, turn: Turn, row: MachineRow) -> MoveProgress:
        whole = self._host.delays.move
        left = timedelta(microseconds=(row.ends_us or 0) - turn.now_us)
        percent = WHOLE - int(WHOLE * (left / whole)) if whole else WHOLE
        percent = min(max(percent, 0), WHOLE)
        return MoveProgress(percent, row.memory_mib * MIB * percent // WHOLE)

    def _require_same_file(self, details: Mapping[str, object]) -> None:
        if details.get(FILE) != str(self._path):
            raise Unsupported(
                f"host {self._host.name} is in another simulation file than the other host",
                reason="OtherSimulation",
            )
