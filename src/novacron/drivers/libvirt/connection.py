"""The connection to one libvirt daemon: made when needed, made again when lost, watched for news.

All calls of libvirt block, so each runs in a thread of its own. A daemon that hangs is noticed by
libvirt's own keep-alive, which ends the connection and every call on it.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import TypeVar

import libvirt

from novacron.core.errors import Unreachable
from novacron.drivers.libvirt.errors import core_errors
from novacron.drivers.libvirt.host import Credentials, LibvirtHost
from novacron.drivers.libvirt.reach import Reach
from novacron.drivers.libvirt.threads import in_thread

__all__ = ["Connection"]

log = logging.getLogger(__name__)

T = TypeVar("T")

OPEN_SECONDS = 15.0
CALL_SECONDS = 60.0
AT_ONCE = 8
# A silent daemon is given up after interval times count, and a little.
KEEPALIVE_SECONDS = 3
KEEPALIVE_COUNT = 4
NEWS = (
    libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE,
    libvirt.VIR_DOMAIN_EVENT_ID_AGENT_LIFECYCLE,
)

_events_lock = threading.Lock()
_events_running = False


class Connection:
    """Gives work a connection that stands; raises only errors of the core."""

    def __init__(
        self, host: LibvirtHost, credentials: Credentials, news: Callable[[str], None]
    ) -> None:
        self._host = host
        self._credentials = credentials
        self._news = news
        self._reach = Reach(host.name, host.uri)
        self._connection: libvirt.virConnect | None = None
        self._opening: asyncio.Task[libvirt.virConnect] | None = None
        self._places = asyncio.Semaphore(AT_ONCE)
        self._closed = False

    async def run(self, work: Callable[[libvirt.virConnect], T]) -> T:
        """Run blocking work; it may take a minute."""
        return await self._run(work, CALL_SECONDS)

    async def run_long(self, work: Callable[[libvirt.virConnect], T]) -> T:
        """Run blocking work that takes as long as it takes."""
        return await self._run(work, None)

    async def close(self) -> None:
        """Let go of it, whatever is under way."""
        self._closed = True
        connection, self._connection = self._connection, None
        if self._opening is not None:
            self._opening.cancel()
        if connection is not None:
            # Unsaid farewells do no harm: the daemon notices.
            threading.Thread(target=_quietly_closed, args=(connection,), daemon=True).start()
        self._reach.forget()

    async def _run(self, work: Callable[[libvirt.virConnect], T], seconds: float | None) -> T:
        async with self._places:
            connection = await self._opened()
            try:
                with core_errors(self._host.name):
                    call = in_thread(lambda: work(connection), f"libvirt-{self._host.name}")
                    return await asyncio.wait_for(call, seconds)
            except TimeoutError:
                self._lost(connection)
                raise Unreachable(f"host {self._host.name} does not answer in time") from None
            except Unreachable:
                self._lost(connection)
                raise

    async def _opened(self) -> libvirt.virConnect:
        if self._closed:
            raise Unreachable(f"the connection to host {self._host.name} was closed")
        if self._connection is not None and self._connection.isAlive():
            return self._connection
        if self._opening is None or self._opening.done():
            self._opening = asyncio.create_task(self._open())
        try:
            # Shielded: one who gives up must not have the next one start all over beside it.
            return await asyncio.wait_for(asyncio.shield(self._opening), OPEN_SECONDS)
        except TimeoutError:
            raise Unreachable(f"host {self._host.name} does not answer in time") from None

    async def _open(self) -> libvirt.virConnect:
        uri = self._reach.uri(await self._credentials())
        loop = asyncio.get_running_loop()
        with core_errors(self._host.name):
            connection = await in_thread(lambda: self._connect(uri, loop), "libvirt-open")
        self._connection = connection
        return connection

    def _connect(self, uri: str, loop: asyncio.AbstractEventLoop) -> libvirt.virConnect:
        _run_events()
        connection = libvirt.openAuth(uri, [[], _no_answer, None], 0)
        connection.setKeepAlive(KEEPALIVE_SECONDS, KEEPALIVE_COUNT)

        def tell(_: object, domain: libvirt.virDomain, *__: object) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._news, domain.UUIDString())

        for event in NEWS:
            connection.domainEventRegisterAny(None, event, tell, None)
        return connection

    def _lost(self, connection: libvirt.virConnect) -> None:
        if self._connection is connection:
            self._connection = None
            threading.Thread(target=_quietly_closed, args=(connection,), daemon=True).start()


def _no_answer(_: object, __: object) -> int:
    return -1  # nobody is there to type a password


def _quietly_closed(connection: libvirt.virConnect) -> None:
    try:
        connection.close()
    except libvirt.libvirtError as error:
        log.debug("closing: %s", error)


def _run_events() -> None:
    """Have libvirt's events delivered, by one thread for the whole process."""
    global _events_running  # noqa: PLW0603 - libvirt's event loop is one per process
    with _events_lock:
        if _events_running:
            return
        # Errors are told by exceptions; libvirt would print each to stderr as well.
        libvirt.registerErrorHandler(lambda *_: None, None)
        libvirt.virEventRegisterDefaultImpl()
        threading.Thread(target=_deliver_events, name="libvirt-events", daemon=True).start()
        _events_running = True


def _deliver_events() -> None:
    while True:
        libvirt.virEventRunDefaultImpl()
