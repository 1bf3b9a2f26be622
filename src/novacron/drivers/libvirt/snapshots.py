"""Snapshots of the machines of one libvirt host."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta

from novacron.core.driver import Accepted
from novacron.core.errors import DriverError
from novacron.core.machine import MachineRef
from novacron.core.snapshot import RestoreOrder, Snapshot, SnapshotOrder
from novacron.drivers.libvirt import snapshotting
from novacron.drivers.libvirt.at_rest import MaybeFrozen
from novacron.drivers.libvirt.build import Builder
from novacron.drivers.libvirt.errands import Errands
from novacron.drivers.libvirt.host import Credentials, LibvirtHost
from novacron.drivers.libvirt.look import Domain, find
from novacron.drivers.libvirt.snapshot_book import keep
from novacron.drivers.libvirt.snapshot_restore import restore
from novacron.drivers.libvirt.threads import on_loop
from novacron.drivers.libvirt.work import HostWork, no_credentials, present

__all__ = ["RESTORE", "LibvirtSnapshots"]

log = logging.getLogger(__name__)

SOON = timedelta(milliseconds=200)
RESTORE = "restore"


class LibvirtSnapshots(HostWork):
    """Satisfies ``Snapshots``."""

    def __init__(self, host: LibvirtHost, credentials: Credentials = no_credentials) -> None:
        super().__init__(host, credentials)
        self._errands = Errands(self._changed_uid)
        # What there was when an errand began: half of what it does is not to be told.
        self._before: dict[str, list[Snapshot]] = {}
        # Whose book was compared with what libvirt has on record since this process began.
        self._compared: set[str] = set()

    def _changed_uid(self, uid: str) -> None:
        """Take note that a machine changed."""

    async def snapshots(self, ref: MachineRef) -> Sequence[Snapshot]:
        """Tell of every whole snapshot; what nobody finishes any more is taken away."""

        def look(builder: Builder) -> tuple[list[Snapshot], list[str]]:
            domain = find(builder.connection, ref.uid)
            if domain is None:
                return [], []
            return snapshotting.list_whole(domain), snapshotting.unfinished(domain)

        if (before := self._before.get(ref.uid)) is not None:
            return before
        found, unfinished = await self._work(look)
        if (before := self._before.get(ref.uid)) is not None:
            return before
        if self._errands.under_way(ref.uid) is not None:
            return found
        if unfinished:
            await self._clear(ref, unfinished[0])
        elif found and ref.uid not in self._compared:
            # Somebody may have died before the book was written, or with two of them. Whether that
            # can be mended now or not, there are these snapshots; the next order tries again.
            with suppress(DriverError):
                await self._errand(ref, "keep", lambda _: None)
        return found

    async def _clear(self, ref: MachineRef, name: str) -> None:
        """Take away what nobody finishes; a silent agent is in the way of no restore or removal."""
        try:
            await self._errand(ref, f"clear {name}", lambda it: snapshotting.clear(it, name))
        except MaybeFrozen as error:
            log.warning("%s on host %s: %s", ref.name, ref.host, error)

    async def take_snapshot(self, ref: MachineRef, order: SnapshotOrder) -> Accepted:
        """Take one; the same name twice makes one."""
        self._require_still(ref.uid)
        loop = asyncio.get_running_loop()

        def lingers() -> None:
            # An agent that answers when it likes is in the way of no other machine's snapshots.
            on_loop(loop, lambda: self._errands.give_place_back(ref.uid))

        return await self._errand(
            ref, f"snapshot {order.name}", lambda domain: snapshotting.take(domain, order, lingers)
        )

    async def restore_snapshot(self, ref: MachineRef, order: RestoreOrder) -> Accepted:
        """Go back to one, once for each request."""
        self._require_still(ref.uid)
        return await self._errand(
            ref,
            f"{RESTORE} {order.snapshot} {order.request}",
            lambda domain: restore(domain, order),
        )

    async def remove_snapshot(self, ref: MachineRef, name: str) -> Accepted:
        """Remove one. An absent one is success."""
        return await self._errand(
            ref, f"discard {name}", lambda domain: snapshotting.remove(domain, name)
        )

    def _require_still(self, uid: str) -> None:
        """Refuse what cannot be done while the machine is made or stopped."""

    async def _errand(self, ref: MachineRef, what: str, work: Callable[[Domain], None]) -> Accepted:
        def do(builder: Builder) -> None:
            domain = present(builder, ref)
            self._before[ref.uid] = snapshotting.list_whole(domain)
            work(domain)
            keep(builder.pool, domain)

        async def run() -> None:
            self._compared.add(ref.uid)  # every errand ends with its book
            async with self._turn(ref.uid):
                pass  # whoever was at it; nobody else begins beside an errand
            try:
                await self._work_on_errand(do)
            finally:
                self._before.pop(ref.uid, None)

        await self._errands.run(ref.uid, what, run)
        return Accepted(SOON)
