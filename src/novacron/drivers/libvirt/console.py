"""The serial console and the screen of a guest."""

from xml.etree import ElementTree as ET

import libvirt

from novacron.core.driver import Display
from novacron.core.errors import Busy, Unsupported
from novacron.core.machine import Power
from novacron.drivers.libvirt.domain import console_log
from novacron.drivers.libvirt.look import Domain
from novacron.drivers.libvirt.pool import Pool
from novacron.drivers.libvirt.threads import in_thread

__all__ = ["LibvirtConsole", "display", "log", "opened"]

CHUNK = 4096


class LibvirtConsole:
    """An open console; satisfies ``ConsoleStream``."""

    def __init__(self, stream: libvirt.virStream) -> None:
        self._stream = stream
        self._closed = False

    async def read(self) -> bytes:
        """Return what the guest said next; nothing once the console has ended."""
        return await in_thread(self._receive, "libvirt-console")

    async def write(self, data: bytes) -> None:
        """Type something."""
        await in_thread(lambda: self._stream.send(data), "libvirt-console-keys")

    async def close(self) -> None:
        """Hang up; whoever reads then gets nothing."""
        self._closed = True
        await in_thread(self._abort, "libvirt-console-end")

    def _receive(self) -> bytes:
        try:
            data = self._stream.recv(CHUNK)
        except libvirt.libvirtError:
            return b""
        return data if isinstance(data, bytes) else b""

    def _abort(self) -> None:
        try:
            self._stream.abort()
        except libvirt.libvirtError:
            return  # it had ended already


def opened(domain: Domain) -> LibvirtConsole:
    """Open the console of a running guest, taking it from whoever has it. Blocks."""
    _require_running(domain)
    stream = domain.handle.connect().newStream()
    domain.handle.openConsole(None, stream, libvirt.VIR_DOMAIN_CONSOLE_FORCE)
    return LibvirtConsole(stream)


def log(pool: Pool, uid: str) -> bytes:
    """Return what a guest said so far. Blocks."""
    return pool.read(console_log(uid))


def display(domain: Domain) -> Display:
    """Tell where a guest's screen is. Blocks."""
    _require_running(domain)
    graphics = ET.fromstring(domain.handle.XMLDesc()).find("devices/graphics[@type='vnc']")  # noqa: S314
    if graphics is None:
        raise Unsupported("this machine has no screen")
    return Display(graphics.get("listen") or "127.0.0.1", int(graphics.get("port") or 0))


def _require_running(domain: Domain) -> None:
    if domain.power is Power.OFF:
        raise Busy("the machine is not running; start it first")
