"""The serial console and the screen of a guest."""

import asyncio
import socket
import threading
import time
from contextlib import suppress
from xml.etree import ElementTree as ET

import libvirt

from novacron.core.driver import Display, Said
from novacron.core.errors import Busy, Unreachable, Unsupported
from novacron.core.machine import Power
from novacron.drivers.libvirt.domain import console_log, console_past
from novacron.drivers.libvirt.errors import core_errors
from novacron.drivers.libvirt.events import attend, turn_away
from novacron.drivers.libvirt.host import LibvirtHost
from novacron.drivers.libvirt.link import Link
from novacron.drivers.libvirt.look import Domain
from novacron.drivers.libvirt.pool import Pool
from novacron.drivers.libvirt.threads import in_thread

__all__ = ["LibvirtConsole", "display", "log", "opened", "screen"]

CHUNK = 4096
# Quicker than a person, slower than what costs anything.
LOOK_SECONDS = 0.02
# What libvirt returns instead of waiting.
NOTHING_YET = -2


class LibvirtConsole:
    """An open console; satisfies ``ConsoleStream``.

    What the guest says is fetched without waiting for it, so that no thread stands on the
    connection when another one has to type or to hang up.
    """

    def __init__(self, stream: libvirt.virStream, link: Link, host: str) -> None:
        self._stream = stream
        self._link = link
        self._host = host
        self._turn = threading.Lock()
        self._closed = False
        attend()

    async def read(self) -> bytes:
        """Return what the guest said next; nothing once the console has ended."""
        while (heard := self._heard()) is None:  # noqa: ASYNC110 - libvirt has no other way to us
            await asyncio.sleep(LOOK_SECONDS)
        return heard

    async def write(self, data: bytes) -> None:
        """Type something."""
        await in_thread(lambda: self._send(data), "libvirt-console-keys")

    async def close(self) -> None:
        """Hang up; whoever reads then gets nothing."""
        if self._closed:
            return
        self._closed = True
        await in_thread(self._abort, "libvirt-console-end")

    def _heard(self) -> bytes | None:
        """Return what has come, or None while nothing has."""
        if self._closed:
            return b""
        try:
            data = self._stream.recv(CHUNK)
        except libvirt.libvirtError:
            data = b"" if self._link.alive else NOTHING_YET  # somebody else took it
        if data != NOTHING_YET:
            return bytes(data)
        if not self._link.alive:
            raise Unreachable(f"host {self._host} does not answer any more")
        return None

    def _send(self, data: bytes) -> None:
        with self._turn, core_errors(self._host):
            while data and not self._closed:
                try:
                    sent = self._stream.send(data)
                except libvirt.libvirtError:
                    if self._link.alive:
                        return  # it has ended, which whoever reads is told
                    raise
                data = data[max(sent, 0) :]
                if sent == NOTHING_YET:
                    time.sleep(LOOK_SECONDS)

    def _abort(self) -> None:
        with self._turn:
            with suppress(libvirt.libvirtError):  # it may have ended already
                self._stream.abort()
            self._link.close()
        turn_away()


def opened(domain: Domain, link: Link, host: str) -> LibvirtConsole:
    """Open the console of a running guest, taking it from whoever has it. Blocks."""
    _require_running(domain)
    stream = link.connection.newStream(libvirt.VIR_STREAM_NONBLOCK)
    domain.handle.openConsole(None, stream, libvirt.VIR_DOMAIN_CONSOLE_FORCE)
    return LibvirtConsole(stream, link, host)


def log(pool: Pool, uid: str, since: int) -> Said:
    """Return what a guest said so far, or the latter part of it. Blocks."""
    name, past = console_log(uid), pool.read(console_past(uid))
    length = len(past) + pool.length(name)
    start = max(length + since, 0) if since < 0 else since
    if start > length:
        start = 0  # libvirt's log daemon begins a new file when one has grown large
    data = past[start:] + pool.read(name, max(start - len(past), 0))
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
