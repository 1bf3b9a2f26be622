"""A driver for machines that exist only in a simulation file.

Every call is one short transaction, made right on the event loop: it costs tens of
microseconds, less than handing it to a thread would. The driver keeps nothing about machines
in memory, so a process killed at any instruction has either done a thing or not.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from datetime import timedelta

from novacron.core.driver import Accepted, Capability
from novacron.core.errors import Busy, Rejected
from novacron.core.guest_commands import AGENT_SILENT
from novacron.core.hooks import GuestProgram, Ran
from novacron.core.host import ClassFacts, HostFacts
from novacron.core.machine import MachinePlan, MachineRef, Observed, Power
from novacron.core.volume import KeptVolume, Volume
from novacron.drivers.simulation import commands, convert
from novacron.drivers.simulation.errors import core_errors
from novacron.drivers.simulation.faults import Operation, strike
from novacron.drivers.simulation.moves import SimulatedMoves
from novacron.drivers.simulation.room import require_sense, require_whole_disk
from novacron.drivers.simulation.snapshots import SimulatedSnapshots
from novacron.drivers.simulation.turn import microseconds
from novacron.drivers.simulation.volumes import Shelf, from_text

__all__ = ["SimulationDriver"]

CAPABILITIES = frozenset(
    {
        Capability.INVENTORY,
        Capability.RESIZE_RUNNING,
        Capability.SNAPSHOTS,
        Capability.GUEST_COMMANDS,
        Capability.VOLUMES,
        Capability.LIVE_MIGRATION,
        Capability.MIGRATION_TARGET,
    }
)
ENCRYPTED = frozenset({Capability.ENCRYPTED_MIGRATION})


class SimulationDriver(SimulatedMoves, SimulatedSnapshots):
    """One host of the simulation, which satisfies every protocol but those of real guests.

    An order that the machine is already carrying out is accepted again; one that contradicts
    the operation under way is ``Busy`` until that ends. ``resize`` and ``set_power`` of a
    machine that is not there are ``Busy`` too: somebody removed it after the caller saw it,
    so the caller has to look again, and will find nothing and make it anew. ``Rejected`` would
    stop it until its owner wrote a new spec, ``Unreachable`` would blame the host.
    """

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Whatever can be told about machines that do not exist."""
        return CAPABILITIES | ENCRYPTED if self._host.migration_tls else CAPABILITIES

    async def observe(self, ref: MachineRef) -> Observed | None:
        """Tell how the machine is; None means it does not exist."""
        self._admit(Operation.OBSERVE, ref)
        with core_errors(self._path):
            store, host_id = self._file()
            now_us = microseconds(self._clock())
            store.settle(now_us)
            row = store.machine(host_id, ref.uid)
            if row is None:
                return None
            seen = convert.observed(row, self._host.usage, now_us)
            ran = commands.ran_on(store, row.number, now_us)
            under_way = commands.under_way_on(store, row.number, now_us)
            return replace(seen, ran=ran, under_way=under_way) if ran or under_way else seen

    async def create(self, plan: MachinePlan) -> Accepted:
        """Make the machine, powered off. The same UID twice makes one machine."""
        self._admit(Operation.CREATE, plan.ref)
        require_sense(plan.resources)
        with self._turn() as turn:
            row = turn.find(plan.ref)
            if row is None:
                return turn.add(plan)
            if row.change == Operation.DELETE:
                turn.require_idle(row)
            return turn.accepted_before(row)

    async def resize(self, plan: MachinePlan) -> Accepted:
        """Give the machine the plan's resources, whether it runs or not; disks never shrink."""
        self._admit(Operation.RESIZE, plan.ref)
        require_sense(plan.resources)
        with self._turn() as turn:
            row = turn.present(plan.ref)
            volumes = turn.volumes(row, plan)
            same = row.next_size == plan.resources and from_text(row.volumes) == volumes
            if row.change in (None, Operation.RESIZE) and same:
                return turn.accepted_before(row)
            turn.require_idle(row)
            require_whole_disk(row, plan.resources)
            return turn.grow(row, plan, volumes)

    async def set_power(self, ref: MachineRef, want: Power, *, force: bool = False) -> Accepted:
        """Start or stop the machine.

        A forced stop takes no time and cuts a start or an orderly stop short.
        """
        starting = want is Power.ON
        operation = Operation.START if starting else Operation.STOP
        self._admit(operation, ref)
        with self._turn() as turn:
            row = turn.present(ref)
            at_once = force and not starting
            cut = at_once and row.change in (Operation.START, Operation.STOP)
            if not cut:
                if row.change == operation or (row.change is None and row.power == want):
                    return turn.accepted_before(row)
                turn.require_idle(row)
            delay = self._host.delays.start if starting else self._host.delays.stop
            delay = timedelta(0) if at_once else delay
            turn.store.change_power(row.number, want, operation, turn.end(delay))
            return Accepted(delay)

    async def delete(self, ref: MachineRef) -> Accepted:
        """Remove the machine, running or not; its volumes stay. An absent machine is success."""
        self._admit(Operation.DELETE, ref)
        with self._turn() as turn:
            row = turn.find(ref)
            if row is None:
                return Accepted()
            if row.change == Operation.DELETE:
                return turn.accepted_before(row)
            turn.require_idle(row)
            delay = self._host.delays.delete
            turn.store.remove(row.number, Operation.DELETE, turn.end(delay))
            return Accepted(delay)

    async def run_once(self, ref: MachineRef, name: str, program: GuestProgram) -> Ran | None:
        """Have a program run in a guest, once for each start; None while it runs."""
        try:
            self._admit(Operation.COMMAND, ref)
        except Busy as error:
            raise Busy(str(error), error.after, reason=AGENT_SILENT) from error
        with self._turn() as turn:
            return commands.run_once(turn, turn.present(ref), name, program)

    async def note_ran(self, ref: MachineRef, ran: Ran) -> None:
        """Remember until the guest stops that something was done for it."""
        self._require_own(ref.host)
        with self._turn() as turn:
            commands.note_ran(turn, turn.present(ref), ran)

    async def forget_ran(self, ref: MachineRef, name: str) -> None:
        """Forget what was done under a name."""
        self._require_own(ref.host)
        with self._turn() as turn:
            commands.forget_ran(turn, turn.present(ref), name)

    async def machines(self, host: str) -> Sequence[Observed]:
        """Tell of every machine on the host that carries an owner's UID."""
        self._require_own(host)
        strike(self._host.faults, Operation.MACHINES, "*", self._random)
        with core_errors(self._path):
            store, host_id = self._file()
            store.settle(microseconds(self._clock()))
            return convert.observed_all(store.machines(host_id), self._host.usage)

    async def kept_volumes(self, host: str) -> Sequence[KeptVolume]:
        """Tell of every volume whose machine is gone."""
        self._require_own(host)
        with self._turn() as turn:
            return turn.shelf.kept()

    async def reclaim(self, ref: MachineRef, volumes: Iterable[Volume]) -> None:
        """Delete volumes that were made for a machine which is gone."""
        self._admit(Operation.DELETE, ref)
        with self._turn() as turn:
            for volume in volumes:
                turn.shelf.drop(ref.namespace, volume.id_for(ref.name, ref.uid))

    async def delete_volume(self, host: str, namespace: str, volume: str) -> None:
        """Delete one volume by its id."""
        self._require_own(host)
        with self._turn() as turn:
            if not turn.shelf.delete(namespace, volume):
                raise Rejected(
                    f"there is no volume {volume} of namespace {namespace} on host {host}",
                    reason="VolumeMissing",
                )

    async def hosts(self) -> AsyncIterator[HostFacts]:
        """Tell of the one host, if its file can be read."""
        strike(self._host.faults, Operation.HOSTS, "*", self._random)
        with core_errors(self._path):
            store, host_id = self._file()
            store.host(host_id)
            kept = tuple(Shelf(store, self._host, host_id).kept())
        yield HostFacts(
            self._host.name,
            self._host.capacity,
            version="simulation",
            devices=self._host.devices,
            kept_volumes=kept,
            classes=tuple(
                ClassFacts(each.name, each.size_mib, storage=each.name if each.shared else "")
                for each in self._host.storage_classes
                if each.size_mib is not None
            ),
        )

    async def close(self) -> None:
        """Let go of the file; the machines stay in it."""
        if self._opened is not None:
            store, _ = self._opened
            self._opened = None
            with core_errors(self._path):
                store.let_go()
