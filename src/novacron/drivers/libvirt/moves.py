"""Machines of one libvirt host that move to another, or come from one."""

import asyncio
from dataclasses import dataclass, replace
from datetime import timedelta

import libvirt

from novacron.core.errors import Busy, DriverError, Unsupported
from novacron.core.machine import MachinePlan, MachineRef, Power
from novacron.core.migration import Destination, Luggage, require_encryption
from novacron.core.move import MovePolicy, MoveProgress
from novacron.drivers.libvirt import arrivals, departures
from novacron.drivers.libvirt.at_rest import MaybeFrozen
from novacron.drivers.libvirt.belongings import Belongings
from novacron.drivers.libvirt.build import Builder
from novacron.drivers.libvirt.departures import Route
from novacron.drivers.libvirt.disk_files import give_back
from novacron.drivers.libvirt.homecoming import set_right
from novacron.drivers.libvirt.host import Credentials, LibvirtHost
from novacron.drivers.libvirt.link import Link
from novacron.drivers.libvirt.look import find
from novacron.drivers.libvirt.packing import packed
from novacron.drivers.libvirt.snapshot_book import put_away, take_out
from novacron.drivers.libvirt.work import HostWork, no_credentials, present

__all__ = ["LibvirtMoves"]

ROUTE = "route"
ERRAND_AGAIN = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class _Failure:
    """What went wrong, with which order."""

    move: str
    target: str
    error: DriverError


class LibvirtMoves(HostWork):
    """Satisfies ``LiveMigration``."""

    def __init__(self, host: LibvirtHost, credentials: Credentials = no_credentials) -> None:
        super().__init__(host, credentials)
        self._sending: dict[str, asyncio.Task[None]] = {}
        self._failed: dict[str, _Failure] = {}
        self._shared_out: dict[str, MovePolicy] = {}

    async def pack(self, ref: MachineRef) -> Luggage:
        """Tell what the machine has that must be where it goes."""

        self._withdraw_errand(ref.uid)
        # Whoever is at its snapshots writes their book too.
        away = ref.uid in self._sending or self._errand_for(ref.uid) is not None

        def pack(builder: Builder) -> Luggage:
            domain = find(builder.pool.connection, ref.uid)
            if domain is not None and not away and departures.progress_of(domain) is None:
                domain = set_right(builder.pool, domain)
                take_out(builder.pool, domain)  # left in their book by one who died
                if domain.power is Power.OFF:
                    give_back(builder.pool, ref.uid)
            belongings = packed(builder.pool, ref.uid, domain)
            return Luggage(replace(belongings, changing=away).contents())

        return await self._work(pack)

    async def send(self, ref: MachineRef, to: Destination, policy: MovePolicy) -> None:
        """Begin to send the machine."""
        if ref.uid in self._sending:
            return
        failed = self._failed.pop(ref.uid, None)
        if failed is not None and (failed.move, failed.target) == (to.move, to.host):
            raise failed.error
        route = to.details[ROUTE]
        assert isinstance(route, Route)
        able = {self._host.name: self._host.migration_tls, route.host: route.tls}
        require_encryption(policy, able)
        departures.require_all_plugged_in(route)
        departures.require_bandwidth(route, policy)
        async with self._turn(ref.uid):
            domain = await self._work(lambda builder: present(builder, ref))
            departures.require_off(domain, route)
            if (what := self._errand_for(ref.uid)) is not None:
                raise Busy(f"its host is busy with it ({what})", ERRAND_AGAIN)
            if len(route.reception.copied) > 1:
                self._shared_out[ref.uid] = policy
            self._sending[ref.uid] = asyncio.create_task(self._send(ref, to.move, route, policy))

    async def _send(self, ref: MachineRef, move: str, route: Route, policy: MovePolicy) -> None:
        def depart(link: Link) -> DriverError | None:
            domain, pool = find(link.connection, ref.uid), self._builder(link).pool
            if domain is None:
                return Busy(f"{ref.name} is not on host {self._host.name} any more")
            try:
                put_away(pool, domain)
            except MaybeFrozen as error:  # it may be so for ever, and others wait for their turn
                return DriverError(str(error), reason=error.reason)
            try:
                departures.depart(domain, pool, route, policy)
            except libvirt.libvirtError as error:
                if not link.connection.isAlive():
                    raise  # it is this host that fell silent, not the other one
                give_back(pool, ref.uid)
                take_out(pool, domain)
                return departures.explained(error, route)
            return None

        error: DriverError | None
        try:
            error = await self._connection.run_aside(depart)
        except DriverError as trouble:
            error = trouble
        finally:
            self._sending.pop(ref.uid, None)
            self._shared_out.pop(ref.uid, None)
        if error is not None:
            self._failed[ref.uid] = _Failure(move, route.host, error)
        self._changed_uid(ref.uid)

    async def movement(self, ref: MachineRef) -> MoveProgress | None:
        """Tell how far a machine is that is being sent; None where none is."""
        shared_out = self._shared_out.get(ref.uid)

        def look(builder: Builder) -> MoveProgress | None:
            domain = find(builder.pool.connection, ref.uid)
            told = departures.progress_of(domain)
            if domain is not None and told is not None and shared_out is not None:
                departures.hasten(domain, shared_out)
            return told

        told = await self._work(look)
        return told or (MoveProgress() if ref.uid in self._sending else None)

    async def cancel_move(self, ref: MachineRef) -> None:
        """Have the machine stay, with all it has; done when it is no longer being sent."""
        away = ref.uid in self._sending or self._errand_for(ref.uid) is not None

        def stay(builder: Builder) -> None:
            departures.abort(find(builder.pool.connection, ref.uid))
            domain = find(builder.pool.connection, ref.uid)  # what was up to be sent is off by now
            if domain is not None and not away and departures.progress_of(domain) is None:
                take_out(builder.pool, domain)
                if domain.power is Power.OFF:
                    give_back(builder.pool, ref.uid)

        await self._work(stay)

    async def clear_out(self, ref: MachineRef, kept: Luggage, *, was_home: bool) -> None:
        """Remove what is left of a machine that is on another host."""
        belongings = Belongings.of(kept.contents)
        await self._work(
            lambda builder: arrivals.cleared(builder, ref.uid, belongings, was_home=was_home)
        )
        self._failed.pop(ref.uid, None)

    async def welcome(self, plan: MachinePlan, luggage: Luggage) -> Destination:
        """Make ready for the machine."""
        host = self._host
        if (uri := host.reached_by_hosts) is None:
            raise Unsupported(
                f"other hosts do not know how to reach host {host.name}: say so in "
                "spec.libvirt.migration.uri of the Host, such as qemu+tls://its-address/system",
                reason="NoWayToHost",
            )
        belongings = Belongings.of(luggage.contents)
        reception = await self._work(lambda builder: arrivals.received(builder, plan, belongings))
        route = Route(host.name, uri, host.migration_address, host.migration_tls, reception)
        return Destination(host.name, {ROUTE: route})

    async def arrived(self, plan: MachinePlan, luggage: Luggage | None) -> MoveProgress:
        """Make a machine that has come one of the host's own."""
        belongings = Belongings.of(luggage.contents) if luggage else None
        async with self._turn(plan.ref.uid):
            return await self._work(lambda builder: arrivals.settled(builder, plan, belongings))

    async def out_of_reach(self, plan: MachinePlan) -> str | None:
        """Return which disk of a machine that is not here is not within reach, if one is not."""
        return await self._work(lambda builder: arrivals.out_of_reach(builder, plan))

    def _errand_for(self, uid: str) -> str | None:
        """Return what is being done to a machine that takes longer than a call."""

    def _withdraw_errand(self, uid: str) -> None:
        """Have nothing such be done that has not begun."""

    def _changed_uid(self, uid: str) -> None:
        """Take note that a machine changed; called on the event loop."""
