"""A driver for one libvirt host.

What it knows of machines is in libvirt: a process killed at any instruction leaves a definition
by which the next one finds the work and goes on. In memory is only what is under way right now.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import timedelta

import libvirt

from novacron.core.driver import Accepted, Capability
from novacron.core.errors import Busy, Rejected
from novacron.core.host import HostFacts
from novacron.core.machine import MachinePlan, MachineRef, Observed, Power, Usage
from novacron.drivers.libvirt.build import Builder
from novacron.drivers.libvirt.building import Building
from novacron.drivers.libvirt.consoles import LibvirtConsoles
from novacron.drivers.libvirt.domain import domain_uuid, root_volume
from novacron.drivers.libvirt.facts import facts_of
from novacron.drivers.libvirt.host import Credentials, LibvirtHost
from novacron.drivers.libvirt.look import Domain, Known, find, observed, read
from novacron.drivers.libvirt.moves import LibvirtMoves
from novacron.drivers.libvirt.stock import Stock
from novacron.drivers.libvirt.stopping import Stopping
from novacron.drivers.libvirt.usage import Meter
from novacron.drivers.libvirt.work import no_credentials, present
from novacron.images import Images

__all__ = ["LibvirtDriver"]

CAPABILITIES = frozenset({Capability.INVENTORY, Capability.CONSOLE, Capability.LIVE_MIGRATION})
SOON = timedelta(milliseconds=200)


class LibvirtDriver(LibvirtConsoles, LibvirtMoves):
    """Satisfies ``Driver``, ``Inventory``, ``Watching``, ``Console`` and ``LiveMigration``.

    ``resize`` and ``set_power`` of a machine that is not there are ``Busy``: somebody removed it
    after the caller saw it, so the caller has to look again.
    """

    def __init__(
        self,
        host: LibvirtHost,
        images: Images,
        credentials: Credentials = no_credentials,
    ) -> None:
        super().__init__(host, credentials)
        self._tell: Callable[[str], None] | None = None
        self._meter = Meter()
        self._usage: dict[str, Usage] = {}
        self._uids: dict[str, str] = {}
        self._building = Building(Stock(images), self._work_long, self._changed_uid)
        self._stopping = Stopping(self._ask_to_stop, self._changed_uid)

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Machines are listed in one call, have consoles and move."""
        return CAPABILITIES

    def on_change(self, tell: Callable[[str], None]) -> None:
        """Have the UID of every machine told that changed."""
        self._tell = tell

    async def observe(self, ref: MachineRef) -> Observed | None:
        """Tell how the machine is; None means it does not exist."""
        known = self._known()

        def look(builder: Builder) -> Observed | None:
            domain = find(builder.pool.connection, ref.uid)
            if domain is None:
                return None
            # Asked for by name: the list of all grows with the host's machines.
            needed = (root_volume(ref.uid), domain.configured.seed)
            there = frozenset(name for name in needed if builder.pool.find(name))
            return observed(domain, builder.pool, there, known)

        seen = await self._work(look)
        if seen is not None:
            self._uids[seen.vm_id] = seen.uid
        return seen

    async def machines(self, host: str) -> Sequence[Observed]:
        """Tell of every machine on the host that carries an owner's UID."""
        if host != self._host.name:
            raise Rejected(f"this is host {self._host.name}, not {host}")
        meter, known = self._meter, self._known()

        def look(builder: Builder) -> tuple[list[Observed], dict[str, Usage]]:
            pool = builder.pool
            measured = meter.read(pool.connection)
            domains = [read(each) for each in pool.connection.listAllDomains()]
            ours = [each for each in domains if each is not None]
            usage = {
                each.uid: measured[uuid]
                for each in ours
                if (uuid := domain_uuid(each.uid)) in measured
            }
            names = pool.names()
            fresh = Known(known.building, known.stopping, usage)
            return [observed(each, pool, names, fresh) for each in ours], usage

        found, self._usage = await self._work(look)
        self._uids = {seen.vm_id: seen.uid for seen in found}
        return found

    async def create(self, plan: MachinePlan) -> Accepted:
        """Make the machine, powered off; go on with one that was abandoned."""
        self._building.raise_failure(plan)
        if self._building.has(plan.ref.uid):
            return Accepted(SOON)

        def begin(builder: Builder) -> bool:
            builder.require_room(plan)
            defined = builder.define(plan)
            needed = (root_volume(plan.ref.uid), defined.seed)
            return all(builder.pool.find(name) for name in needed)

        if not await self._work(begin):
            self._building.start(plan)
        return Accepted(SOON)

    async def resize(self, plan: MachinePlan) -> Accepted:
        """Give the machine what the plan says, now or once it was off."""
        self._require_idle(plan.ref.uid)

        def change(builder: Builder) -> None:
            builder.change(plan, present(builder, plan.ref))

        await self._work(change)
        return Accepted()

    async def set_power(self, ref: MachineRef, want: Power, *, force: bool = False) -> Accepted:
        """Start or stop the machine; a forced stop asks the guest nothing."""
        if want is Power.ON:
            self._require_idle(ref.uid)
            await self._work(lambda builder: builder.start(present(builder, ref)))
        elif force:
            await self._work(lambda builder: _pull_plug(present(builder, ref)))
            self._stopping.forget(ref.uid)
        elif await self._work(lambda builder: present(builder, ref).power is Power.ON):
            self._require_built(ref.uid)
            self._stopping.begin(ref.uid)
        return Accepted(SOON)

    async def delete(self, ref: MachineRef) -> Accepted:
        """Remove the machine and all it owns. An absent machine is success."""
        self._stopping.forget(ref.uid)
        if self._building.stop(ref.uid):
            raise Busy(f"{ref.name} is still being made; what there is of it goes then", SOON)
        await self._work(
            lambda builder: builder.remove(ref.uid, find(builder.pool.connection, ref.uid))
        )
        self._building.forget(ref.uid)
        return Accepted()

    async def hosts(self) -> AsyncIterator[HostFacts]:
        """Tell of the host behind this connection."""
        host = self._host
        self._forget_premises()  # they may have changed
        yield await self._work(
            lambda builder: facts_of(builder.pool.connection, host, builder.machinery)
        )

    async def close(self) -> None:
        """Let go of the connection; what is under way is found and finished by the next one."""
        self._stopping.close()
        self._building.close()
        await self._connection.close()

    def _known(self) -> Known:
        return Known(self._building.uids, self._stopping.uids, self._usage)

    def _require_idle(self, uid: str) -> None:
        self._require_built(uid)
        if uid in self._stopping.uids:
            raise Busy("it is being stopped")

    def _require_built(self, uid: str) -> None:
        if self._building.has(uid):
            raise Busy("it is still being made")

    async def _ask_to_stop(self, uid: str) -> bool:
        """Ask a guest to shut down; say whether it is off by now."""

        def ask(builder: Builder) -> bool:
            domain = find(builder.pool.connection, uid)
            if domain is None or domain.power is Power.OFF:
                return True
            if domain.state != libvirt.VIR_DOMAIN_SHUTDOWN:
                domain.handle.shutdownFlags(libvirt.VIR_DOMAIN_SHUTDOWN_ACPI_POWER_BTN)
            return False

        return await self._work(ask)

    def _heard(self, uuid: str) -> None:
        if (uid := self._uids.get(uuid)) is not None:
            self._changed_uid(uid)

    def _changed_uid(self, uid: str) -> None:
        self._stopping.look(uid)
        if self._tell is not None:
            self._tell(uid)


def _pull_plug(domain: Domain) -> None:
    if domain.power is Power.ON:
        domain.handle.destroy()
