"""One open connection of libvirt's, and the news that come by it. Blocks.

A daemon that hangs is noticed by libvirt's own keep-alive, which ends the connection and the call
on it; but only once it is open, and only where one thread at a time uses it. With two, libvirt up
to 10.3 (CVE-2024-4418) leaves the second one waiting and then writes into the stack of a thread
that has ended.
"""

import os
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import libvirt

from novacron.core.machine import Power
from novacron.drivers.libvirt.events import deliver_events
from novacron.drivers.libvirt.threads import Worker

__all__ = ["CPUS", "Link", "News", "hang_up", "own_sockets"]

# A silent daemon is given up after interval times count, and a little.
KEEPALIVE_SECONDS = 3
KEEPALIVE_COUNT = 4
KINDS_OF_NEWS = 3
# Where libvirt tells how many a host has.
CPUS = 2
# Events that say no more than that a guest is there, paused or not.
MERELY_ON = frozenset(
    {
        (libvirt.VIR_DOMAIN_EVENT_STARTED, libvirt.VIR_DOMAIN_EVENT_STARTED_BOOTED),
        (libvirt.VIR_DOMAIN_EVENT_RESUMED, libvirt.VIR_DOMAIN_EVENT_RESUMED_UNPAUSED),
        (libvirt.VIR_DOMAIN_EVENT_SUSPENDED, libvirt.VIR_DOMAIN_EVENT_SUSPENDED_PAUSED),
    }
)
# Whoever makes one of our domains is one of us, and knows.
ADDED = (libvirt.VIR_DOMAIN_EVENT_DEFINED, libvirt.VIR_DOMAIN_EVENT_DEFINED_ADDED)
# Every guest begins so.
NO_AGENT_YET = libvirt.VIR_CONNECT_DOMAIN_EVENT_AGENT_LIFECYCLE_REASON_DOMAIN_STARTED
# The UUID of a domain that changed, and its power if that is all that is new.
News = Callable[[str, Power | None], object]


@dataclass(frozen=True, slots=True)
class Link:
    """An open connection, for one thread at a time, and a thread that is at its service.

    ``pools`` are those that were looked up by it.
    """

    connection: libvirt.virConnect
    worker: Worker
    cpus: int
    pools: dict[str, libvirt.virStoragePool] = field(default_factory=dict)
    _callbacks: list[int] = field(default_factory=list)

    @classmethod
    def open(cls, uri: str) -> "Link":
        """Open a connection."""
        deliver_events()
        connection = libvirt.openAuth(uri, [[], _no_answer, None], 0)
        try:
            connection.setKeepAlive(KEEPALIVE_SECONDS, KEEPALIVE_COUNT)
            cpus = int(connection.getInfo()[CPUS])
        except libvirt.libvirtError:
            connection.close()
            raise
        return cls(connection, Worker("libvirt-link"), cpus)

    def listen(self, tell: News) -> None:
        """Have every domain that changes told, in a thread of libvirt's."""

        def turned(
            _: object, domain: libvirt.virDomain, event: int, detail: int, *__: object
        ) -> None:
            if (event, detail) != ADDED:
                tell(domain.UUIDString(), Power.ON if (event, detail) in MERELY_ON else None)

        def agent(_: object, domain: libvirt.virDomain, __: int, reason: int, *___: object) -> None:
            if reason != NO_AGENT_YET:
                tell(domain.UUIDString(), None)

        def changed(_: object, domain: libvirt.virDomain, *__: object) -> None:
            tell(domain.UUIDString(), None)

        for event, heard in (
            (libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE, turned),
            (libvirt.VIR_DOMAIN_EVENT_ID_AGENT_LIFECYCLE, agent),
            (libvirt.VIR_DOMAIN_EVENT_ID_DEVICE_REMOVED, changed),
        ):
            number = self.connection.domainEventRegisterAny(None, event, heard, None)
            self._callbacks.append(number)

    @property
    def listens(self) -> bool:
        """Say whether news come by it."""
        return len(self._callbacks) == KINDS_OF_NEWS

    @property
    def alive(self) -> bool:
        """Say whether it has not ended, as far as is known; does not ask the daemon."""
        try:
            return bool(self.connection.isAlive())
        except libvirt.libvirtError:
            return False  # we closed it

    def close(self) -> None:
        """End it; a daemon that hangs is waited for until keep-alive gives up."""
        # A callback holds on to its connection: libvirt would keep the socket for ever.
        for number in self._callbacks:
            with suppress(libvirt.libvirtError):  # what matters is done before it asks the daemon
                self.connection.domainEventDeregisterAny(number)
        self.worker.dismiss()
        self.pools.clear()  # each of them holds on to it as well
        with suppress(libvirt.libvirtError):
            self.connection.close()


def hang_up(address: tuple[str, int]) -> None:
    """End whatever connection this process has to an address.

    libvirt opens connections without any time limit and offers no way to stop it: where a machine
    took the first bytes and lost its power then, it would wait for ever. Whoever else loses a
    connection by this makes a new one.
    """
    peers = {each[4] for each in socket.getaddrinfo(*address, type=socket.SOCK_STREAM)}
    for ours in own_sockets():
        with suppress(OSError):
            if ours.getpeername() in peers:
                ours.shutdown(socket.SHUT_RDWR)


def own_sockets() -> Iterator[socket.socket]:
    """Return every socket of this process, as a copy that is closed when the next is asked for."""
    for entry in list(Path("/proc/self/fd").iterdir()):
        try:
            copy = os.dup(int(entry.name))
        except OSError:
            continue  # it was closed meanwhile
        if not stat.S_ISSOCK(os.fstat(copy).st_mode):
            os.close(copy)
            continue
        with socket.socket(fileno=copy) as ours:
            yield ours


def _no_answer(_: object, __: object) -> int:
    return -1  # nobody is there to type a password
