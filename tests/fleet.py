"""Several real hosts for tests: libvirtd and QEMU each, joined by a network, sharing a directory.

``own_fleet()`` starts one for tests that break it; ``shared_fleet()`` is one for the whole run.
Root's hosts have namespaces of their own, an ordinary user's are two in session mode.
"""

import os
import re
import select
import signal
import tempfile
import time
import tty
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from functools import cache
from pathlib import Path
from xml.etree import ElementTree as ET

import libvirt

from novacron.localcluster.hypervisor import Fleet, Hypervisor
from novacron.localcluster.identity import Identity

__all__ = [
    "Console",
    "daemon_of",
    "kill_daemon",
    "own_fleet",
    "power_off",
    "shared_fleet",
    "stop_shared_fleet",
]


@contextmanager
def own_fleet(count: int = 2) -> Iterator[Fleet]:
    """Start hosts for tests that break them; nothing is left of them."""
    with tempfile.TemporaryDirectory(prefix="nova-fleet-") as directory:
        fleet = Fleet(Path(directory), count)
        try:
            fleet.start()
            yield fleet
        finally:
            fleet.stop(timedelta(0))


_shared = ExitStack()


@cache
def shared_fleet() -> Fleet:
    """Return two hosts for the whole run: tests clear what they made."""
    return _shared.enter_context(own_fleet())


def stop_shared_fleet() -> None:
    """End them, if they were ever needed."""
    _shared.close()
    shared_fleet.cache_clear()


def daemon_of(host: Hypervisor) -> Identity:
    """Return the libvirtd itself, which its supervisor starts again when it ends."""
    keeper = host.running()
    assert keeper is not None
    deadline = time.monotonic() + 10
    while True:
        children = Path(f"/proc/{keeper.pid}/task/{keeper.pid}/children").read_text().split()
        for child in children:
            if Path(f"/proc/{child}/comm").read_text().strip() == "libvirtd":
                found = Identity.of(int(child))
                assert found is not None
                return found
        assert time.monotonic() < deadline, "libvirtd does not run"
        time.sleep(0.05)


def kill_daemon(host: Hypervisor) -> None:
    """End a host's daemon at once, for good: guests go on, ``host.start()`` brings it back."""
    host.kill()


def power_off(host: Hypervisor) -> None:
    """Cut a host's power: daemon, guests and namespace; ``Fleet.start`` brings it back."""
    host.power_off()


class Console:
    """What a guest says on its serial console, and what is typed there.

    Its terminal is opened on this machine, because libvirt's streams want an event loop.
    """

    def __init__(self, domain: libvirt.virDomain) -> None:
        self.heard = ""
        source = ET.fromstring(domain.XMLDesc()).find("devices/serial/source")
        assert source is not None
        self._terminal = os.open(source.get("path", ""), os.O_RDWR | os.O_NOCTTY)
        tty.setraw(self._terminal)

    def until(self, pattern: str, seconds: float = 90) -> re.Match[str]:
        """Wait until the guest says something in whole lines, and forget all before its end."""
        deadline = time.monotonic() + seconds
        # Half a line reads as another word: an address without its end is somebody else's.
        while not (found := re.search(pattern, self.heard[: self.heard.rfind("\n") + 1])):
            left = deadline - time.monotonic()
            assert left > 0, f"never said {pattern!r}, but:\n{self.heard}"
            if select.select([self._terminal], [], [], left)[0]:
                said = os.read(self._terminal, 65536)
                self.heard += said.decode(errors="replace").replace("\r", "")
        self.heard = self.heard[found.end() :]
        return found

    def type(self, line: str) -> None:
        """Type a line."""
        os.write(self._terminal, f"{line}\n".encode())

    def tick(self, seconds: float = 90) -> int:
        """Return the guest's next count, which begins at one when it boots."""
        return int(self.until(r"(?:^|\n)tick (\d+)\n", seconds)[1])

    def close(self) -> None:
        """Hang up."""
        os.close(self._terminal)


@contextmanager
def frozen(host: Hypervisor) -> Iterator[None]:
    """Let a daemon hang for a while: its sockets are open, and nobody answers."""
    daemon = daemon_of(host)
    os.kill(daemon.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(daemon.pid, signal.SIGCONT)
