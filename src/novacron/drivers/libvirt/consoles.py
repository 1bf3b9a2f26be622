"""Consoles and screens of the machines of one libvirt host.

Whoever has one open may be another process than the one that tends the machine, with neither its
lease nor its turn, so nothing is changed here.
"""

import socket

from novacron.core.driver import ConsoleStream, Display, Said
from novacron.core.machine import MachineRef
from novacron.drivers.libvirt import console
from novacron.drivers.libvirt.link import Link
from novacron.drivers.libvirt.work import HostWork, as_it_is

__all__ = ["LibvirtConsoles"]


class LibvirtConsoles(HostWork):
    """Satisfies ``Console``."""

    async def console(self, ref: MachineRef) -> ConsoleStream:
        """Open the console of a running machine."""

        def open_console(link: Link) -> ConsoleStream:
            domain = as_it_is(self._builder(link), ref)
            return console.opened(domain, link, self._host.name)

        return await self._connection.run_apart(open_console)

    async def console_log(self, ref: MachineRef, since: int = 0) -> Said:
        """Return what the machine said on its console so far, or the latter part of it."""
        return await self._work(lambda builder: console.log(builder.pool, ref.uid, since))

    async def display(self, ref: MachineRef) -> Display:
        """Tell where the machine's screen is."""
        host = self._host
        return await self._work(lambda builder: console.display(as_it_is(builder, ref), host))

    async def open_display(self, ref: MachineRef) -> socket.socket:
        """Connect to the machine's screen."""
        host = self._host
        return await self._work(lambda builder: console.screen(as_it_is(builder, ref), host))
