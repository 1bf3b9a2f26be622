"""The serial console and the screen of a guest."""

import socket
from contextlib import suppress
from xml.etree import ElementTree as ET

import libvirt

from novacron.core.driver import Display, Said
from novacron.core.errors import Busy, DriverError, Unsupported
from novacron.core.machine import Power
from novacron.drivers.libvirt.domain import console_log
from novacron.drivers.libvirt.errors import core_errors
from novacron.drivers.libvirt.host import LibvirtHost
from novacron.drivers.libvirt.link import Link
from novacron.drivers.libvirt.look import Domain
from novacron.drivers.libvirt.pool import Pool
from novacron.drivers.libvirt.threads import in_thread

__all__ = ["LibvirtConsole", "display", "log", "opened", "screen"]

CHUNK = 4096


class LibvirtConsole:
    """An open console; satisfies ``ConsoleStream``."""

    def __init__(self, stream: libvirt.virStream, link: Link, host: str) -> None:
        self._stream = stream
        self._link = link
        self._host = host
        self._closed = False

    async def read(self) -> bytes:
        """Return what the guest said next; nothing once the console has ended."""
        return await in_thread(self._receive, "libvirt-console")

    async def write(self, data: bytes) -> None:
        """Type something."""
        await in_thread(lambda: self._send(data), "libvirt-console-keys")

    async def close(self) -> None:
        """Hang up; whoever reads then gets nothing."""
        self._closed = True
        await in_thread(self._abort, "libvirt-console-end")

    def _receive(self) -> bytes:
        try:
            with core_errors(self._host):
                data = self._stream.recv(CHUNK)
        except DriverError:
            if self._closed or self._link.alive:
                return b""  # somebody else took it
            raise
        return data if isinstance(data, bytes) else b""

    def _send(self, data: bytes) -> None:
        try:
            with core_errors(self._host):
                while data:
                    data = data[self._stream.send(data) :]
        except DriverError:
            if not self._link.alive:
                raise
            # Whoever reads hears that it has ended.

    def _abort(self) -> None:
        with suppress(libvirt.libvirtError):  # it may have ended already
            self._stream.abort()
        self._link.close()


def opened(domain: Domain, link: Link, host: str) -> LibvirtConsole:
    """Open the console of a running guest, taking it from whoever has it. Blocks."""
    _require_running(domain)
    stream = link.connection.newStream()
    domain.handle.openConsole(None, stream, libvirt.VIR_DOMAIN_CONSOLE_FORCE)
    return LibvirtConsole(stream, link, host)


def log(pool: Pool, uid: str, since: int) -> Said:
    """Return what a guest said so far, or the latter part of it. Blocks."""
    name = console_log(uid)
    length = pool.length(name)
    start = max(length + since, 0) if since < 0 else since
    if start > length:
        start = 0  # libvirt's log daemon begins a new file when one has grown large
    data = pool.read(name, start)
    return Said(data, start + len(data))


def display(domain: Domain, host: LibvirtHost) -> Display:
    """Tell where a guest's screen is. Blocks."""
    _require_running(domain)
    graphics = ET.fromstring(domain.handle.XMLDesc()).find("devices/graphics[@type='vnc']")  # noqa: S314
    if graphics is None:
        raise Unsupported("this machine has no screen")
    address, port = graphics.get("listen") or "127.0.0.1", int(graphics.get("port") or 0)
    return Display(address, port, host.is_near, host.tunnel(address, port))


def screen(domain: Domain, host: LibvirtHost) -> socket.socket:
    """Connect to a guest's screen, also where it listens on another network. Blocks."""
    _require_running(domain)
    if not host.is_near:
        raise Unsupported(f"the screens of host {host.name} cannot be reached from this machine")
    flag = libvirt.VIR_DOMAIN_OPEN_GRAPHICS_SKIPAUTH
    return socket.socket(fileno=domain.handle.openGraphicsFD(0, flag))


def _require_running(domain: Domain) -> None:
    if domain.power is Power.OFF:
        raise Busy("the machine is not running; start it first", reason="NotRunning")
