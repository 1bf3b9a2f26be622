"""A driver for one libvirt host.

What it knows of machines is in libvirt: a process killed at any instruction leaves a definition
by which the next one finds the work and goes on. In memory is only what is under way right now.
"""

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from datetime import timedelta

import libvirt

from novacron.core.driver import Accepted, Capability
from novacron.core.errors import Busy, DriverError, Rejected
from novacron.core.host import HostFacts
from novacron.core.machine import MachinePlan, MachineRef, Observed, Power, Usage
from novacron.drivers.libvirt.build import Builder
from novacron.drivers.libvirt.building import Building, made_at_once, started_at_once
from novacron.drivers.libvirt.census import at_rest, look_at_all
from novacron.drivers.libvirt.commands import LibvirtGuestCommands
from novacron.drivers.libvirt.consoles import LibvirtConsoles
from novacron.drivers.libvirt.domain import domain_uuid
from novacron.drivers.libvirt.facts import facts_of
from novacron.drivers.libvirt.foreign import Foreign
from novacron.drivers.libvirt.hearing import Hearing
from novacron.drivers.libvirt.homecoming import set_right
from novacron.drivers.libvirt.host import Credentials, LibvirtHost
from novacron.drivers.libvirt.look import (
    Domain,
    Known,
    find,
    unless_gone,
)
from novacron.drivers.libvirt.moves import LibvirtMoves
from novacron.drivers.libvirt.noting import Noting
from novacron.drivers.libvirt.patience import Patience
from novacron.drivers.libvirt.seed import seed_of
from novacron.drivers.libvirt.snapshots import RESTORE, LibvirtSnapshots
from novacron.drivers.libvirt.stock import Stock, Workshop
from novacron.drivers.libvirt.stopping import Stopping
from novacron.drivers.libvirt.usage import Meter
from novacron.drivers.libvirt.volumes import LibvirtVolumes, shelved
from novacron.drivers.libvirt.work import no_credentials, present, seen_by
from novacron.images import Locate

__all__ = ["LibvirtDriver"]

log = logging.getLogger(__name__)

CAPABILITIES = frozenset(
    {
        Capability.INVENTORY,
        Capability.CONSOLE,
        Capability.SNAPSHOTS,
        Capability.GUEST_COMMANDS,
        Capability.VOLUMES,
        Capability.LIVE_MIGRATION,
    }
)
SOON = timedelta(milliseconds=200)
# The end of what takes longer is told when it comes; this is for whoever does not listen.
LATER = timedelta(seconds=1)
IMAGES_AS_USUAL = Workshop()


class LibvirtDriver(
    LibvirtConsoles, LibvirtSnapshots, LibvirtGuestCommands, LibvirtVolumes, LibvirtMoves
):
    """Satisfies ``Driver``, ``Inventory``, ``Watching``, and each optional protocol it inherits.

    ``resize`` and ``set_power`` of a machine that is not there are ``Busy``: somebody removed it
    after the caller saw it, so the caller has to look again.
    """

    def __init__(
        self,
        host: LibvirtHost,
        locate: Locate,
        credentials: Credentials = no_credentials,
        workshop: Workshop = IMAGES_AS_USUAL,
    ) -> None:
        super().__init__(host, credentials)
        self._tell: Callable[[str], None] | None = None
        self._meter = Meter()
        self._usage: dict[str, Usage] = {}
        self._hearing = Hearing()
        self._patience = Patience()
        self._seen: dict[str, Observed] = {}
        self._lately: set[str] = set()
        self._starting: set[str] = set()
        self._stock = Stock(workshop, host.image_cache_bytes)
        self._foreign = Foreign()
        self._building = Building(
            self._stock, locate, self._work, self._work_for_image, self._changed_uid
        )
        self._stopping = Stopping(self._ask_to_stop, self._changed_uid)
        self._noting = Noting(self._work_long, self._is_left_alone, self._turn)

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What its parents do, and machines listed in one call."""
        found = CAPABILITIES
        if self._host.migration_tls:
            found |= {Capability.ENCRYPTED_MIGRATION}
        if self._host.reached_by_hosts is not None:
            found |= {Capability.MIGRATION_TARGET}
        return found

    def on_change(self, tell: Callable[[str], None]) -> None:
        """Have the UID of every machine told that changed."""
        self._tell = tell

    async def observe(self, ref: MachineRef) -> Observed | None:
        """Tell how the machine is; None means it does not exist."""
        known, fresh = self._known(), self._building.just_completed(ref.uid)

        def look(builder: Builder) -> Observed | None:
            domain = find(builder.connection, ref.uid)
            if domain is None:
                return None
            complete = fresh or builder.is_complete(domain)
            return unless_gone(lambda: seen_by(builder, domain, known, complete=complete))

        return self._noted(await self._work(look))

    async def machines(self, host: str) -> Sequence[Observed]:
        """Tell of every machine on the host that carries an owner's UID."""
        if host != self._host.name:
            raise Rejected(f"this is host {self._host.name}, not {host}")
        meter, lately, before = self._meter, self._seen_lately(), dict(self._seen)
        hearing = self._hearing.following({seen.uid for seen in before.values()})
        known = replace(self._known(), hearing=hearing)
        census = await self._work(lambda builder: look_at_all(builder, meter, known, lately))
        self._usage, self._hearing = census.usage, hearing
        self._noting.begin(census.due)
        paced = map(self._patience.paced, census.machines)
        found = [self._newest(each, before.get(each.vm_id)) for each in paced]
        self._patience.forget_all_but({seen.uid for seen in found})
        self._seen = {seen.vm_id: seen for seen in found}
        return found

    async def create(self, plan: MachinePlan) -> Accepted:
        """Make the machine; go on with one that was abandoned.

        One whose image is at hand is also started, where it will be anyway.
        """
        self._building.raise_failure(plan)
        if self._building.has(plan.ref.uid):
            return Accepted(LATER)
        known, image = self._known(), await self._building.at_hand(plan)

        def begin(builder: Builder) -> Observed | None:
            there, seed = find(builder.connection, plan.ref.uid), seed_of(plan)
            if there is None:
                builder.require_room(plan)
            else:
                there = set_right(builder.pool, there)
                builder.require_disk(there)
            domain = builder.define(plan, seed, there)
            made: Domain | None = domain
            if there is None or not builder.is_complete(there):
                made = (
                    None
                    if image is None
                    else made_at_once(builder, self._stock, plan, seed, image, domain)
                )
            if made is None:
                return None
            running = started_at_once(builder, made) if plan.start else made
            return seen_by(builder, running, known, complete=True)

        async with self._turn(plan.ref.uid):
            if (seen := await self._work(begin)) is not None:
                return Accepted(seen=self._noted(seen))
            self._building.start(plan)
            return Accepted(LATER)

    async def resize(self, plan: MachinePlan) -> Accepted:
        """Give the machine what the plan says, now or once it was off."""
        self._require_idle(plan.ref.uid)

        def change(builder: Builder) -> None:
            builder.change(plan, present(builder, plan.ref))

        async with self._turn(plan.ref.uid):
            try:
                await self._work(change)
            finally:
                self._outdated(plan.ref.uid)  # libvirt tells of it too, later
        return Accepted()

    async def set_power(self, ref: MachineRef, want: Power, *, force: bool = False) -> Accepted:
        """Start or stop the machine; a forced stop asks the guest nothing."""
        if want is Power.ON:
            return await self._start(ref)
        if force:
            await self._work(lambda builder: _pull_plug(present(builder, ref)))
            self._stopping.forget(ref.uid)
            return Accepted()
        if await self._work(lambda builder: present(builder, ref).power is Power.ON):
            self._require_built(ref.uid)
            self._stopping.begin(ref.uid)
        return Accepted(SOON)

    async def _start(self, ref: MachineRef) -> Accepted:
        self._require_idle(ref.uid)
        known, uuid = self._known(), domain_uuid(ref.uid)

        def start(builder: Builder) -> Observed:
            return seen_by(builder, builder.start(present(builder, ref)), known, complete=True)

        self._starting.add(uuid)
        try:
            async with self._turn(ref.uid):
                return Accepted(seen=self._noted(await self._work(start)))
        finally:
            self._starting.discard(uuid)

    async def delete(self, ref: MachineRef) -> Accepted:
        """Remove the machine and all it owns. An absent machine is success."""
        self._stopping.forget(ref.uid)
        if self._building.stop(ref.uid):
            raise Busy(f"{ref.name} is still being made; what there is of it goes then", SOON)
        self._errands.withdraw(ref.uid)
        if self._errands.under_way(ref.uid) is not None:
            # It need not end well any more, and with a guest that hangs it would never end.
            await self._work(lambda builder: _end_guest(builder, ref.uid))
        self._errands.require_idle(ref.uid)
        await self._work(lambda builder: builder.remove(ref.uid, find(builder.connection, ref.uid)))
        self._building.forget(ref.uid)
        self._errands.forget(ref.uid)
        return Accepted()

    async def hosts(self) -> AsyncIterator[HostFacts]:
        """Tell of the host behind this connection."""
        host = self._host
        self._forget_premises()  # they may have changed

        def tell(builder: Builder) -> HostFacts:
            facts = facts_of(builder.connection, host, builder.machinery)
            return shelved(builder).told(facts, self._foreign)

        facts = await self._work(tell)
        # Now, because whoever asks may want no more than the first answer.
        try:
            await self._work(lambda builder: self._stock.tidy(builder.pool))
        except DriverError as error:
            log.warning("images on host %s are not in order: %s", host.name, error)
        yield facts

    async def close(self) -> None:
        """Let go of the connection; what is under way is found and finished by the next one."""
        self._stopping.close()
        self._building.close()
        self._noting.close()
        await self._errands.close()
        await self._connection.close()

    def _known(self) -> Known:
        return Known(
            self._building.uids,
            self._stopping.uids,
            self._usage,
            self._building.progress,
            self._errands.those(RESTORE),
            self._hearing.until_next(),
        )

    def _seen_lately(self) -> dict[str, Observed]:
        """Return, once, who was seen at rest since the last look at all, and had no news since."""
        lately, self._lately = self._lately, set()
        return {
            uuid: seen
            for uuid in lately
            if (seen := self._seen.get(uuid)) is not None and at_rest(seen)
        }

    def _newest(self, listed: Observed, before: Observed | None) -> Observed:
        """Return what was seen of a machine while all were looked at, which takes longer."""
        noted = self._seen.get(listed.vm_id)
        return listed if noted is None or noted is before else noted

    def _noted(self, seen: Observed | None) -> Observed | None:
        if seen is not None:
            seen = self._patience.paced(seen)
            self._seen[seen.vm_id] = seen
            self._lately.add(seen.vm_id)
        return seen

    def _errand_for(self, uid: str) -> str | None:
        return self._errands.under_way(uid)

    def _withdraw_errand(self, uid: str) -> None:
        self._errands.withdraw(uid)

    def _require_idle(self, uid: str) -> None:
        self._require_still(uid)
        self._errands.require_idle(uid)

    def _require_still(self, uid: str) -> None:
        self._require_built(uid)
        if uid in self._stopping.uids:
            raise Busy("it is being stopped")

    def _is_left_alone(self, uid: str) -> bool:
        """Say whether nothing is under way that writes a machine down."""
        at_work = self._building.has(uid) or uid in self._sending or self._is_being_written(uid)
        return not at_work and self._errands.under_way(uid) is None

    def _require_built(self, uid: str) -> None:
        if self._building.has(uid):
            raise Busy("it is still being made")

    async def _ask_to_stop(self, uid: str) -> bool:
        """Ask a guest to shut down; say whether it is off by now."""

        def ask(builder: Builder) -> bool:
            domain = find(builder.connection, uid)
            if domain is None or domain.power is Power.OFF:
                return True
            if domain.state != libvirt.VIR_DOMAIN_SHUTDOWN:
                domain.handle.shutdownFlags(libvirt.VIR_DOMAIN_SHUTDOWN_ACPI_POWER_BTN)
            return False

        return await self._work(ask)

    def _heard(self, uuid: str, power: Power | None) -> None:
        seen = self._seen.get(uuid)
        if seen is None or self._building.has(seen.uid):
            return
        # What was seen already, and what we do ourselves and tell of in the end, is no news.
        expected = Power.ON if uuid in self._starting else seen.power
        if expected is not power or seen.hindered is not None:
            self._changed_uid(seen.uid)

    def _outdated(self, uid: str) -> None:
        self._lately.discard(domain_uuid(uid))

    def _changed_uid(self, uid: str) -> None:
        self._outdated(uid)
        self._stopping.look(uid)
        if self._tell is not None:
            self._tell(uid)


def _pull_plug(domain: Domain) -> None:
    if domain.power is Power.ON:
        domain.handle.destroy()


def _end_guest(builder: Builder, uid: str) -> None:
    if (domain := find(builder.connection, uid)) is not None:
        _pull_plug(domain)
