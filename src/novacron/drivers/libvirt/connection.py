"""The connections to one libvirt daemon: made when needed, made again when lost.

All calls of libvirt block, so each runs in a thread of its own, with a connection of its own as
long as it lasts; they are few, and kept for the next ones. Nobody waits for ever: neither for a
place among them, nor for a connection, nor for an answer.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from typing import TypeVar

import libvirt

from novacron.core.errors import Unreachable
from novacron.drivers.libvirt.errands import ERRANDS_AT_ONCE
from novacron.drivers.libvirt.errors import core_errors, sentence
from novacron.drivers.libvirt.host import Credentials, LibvirtHost
from novacron.drivers.libvirt.link import Link, News, hang_up
from novacron.drivers.libvirt.reach import Reach
from novacron.drivers.libvirt.threads import Ended, in_thread, on_loop

__all__ = ["Connection"]

log = logging.getLogger(__name__)

T = TypeVar("T")

OPEN_SECONDS = 15.0
# libvirt's own tries end by themselves, except where a machine fell silent in the midst of them.
HANG_UP_SECONDS = 60.0
CALL_SECONDS = 60.0
# Whoever starts a guest keeps a CPU of its host busy; one place more keeps nobody waiting for it.
FEWEST_AT_ONCE = 2
MOST_AT_ONCE = 4
# Apart from the rest: what takes long must not make a host look as if it did not answer.
LONG_AT_ONCE = 4
# And apart from that: an image takes as long as whoever has it likes.
IMAGES_AT_ONCE = 4
# Each is a call that waits for a machine to have moved.
ASIDE_AT_ONCE = 16


class Connection:
    """Gives work a connection that stands; raises only errors of the core."""

    def __init__(self, host: LibvirtHost, credentials: Credentials, news: News) -> None:
        self._host = host
        self._credentials = credentials
        self._news = news
        self._reach = Reach(host.name, host.uri)
        self._idle: list[Link] = []
        self._listener: Link | None = None
        self._opening: asyncio.Task[None] | None = None
        self._since = 0.0
        self._places = asyncio.Semaphore(FEWEST_AT_ONCE)
        self._cpus: int | None = None
        self._long_places = asyncio.Semaphore(LONG_AT_ONCE)
        # And apart from that: a guest that hangs may keep the one it has for ever.
        self._errand_places = asyncio.Semaphore(ERRANDS_AT_ONCE)
        self._image_places = asyncio.Semaphore(IMAGES_AT_ONCE)
        self._aside_places = asyncio.Semaphore(ASIDE_AT_ONCE)
        self._closed = False

    async def run(self, work: Callable[[Link], T]) -> T:
        """Run blocking work; it may take a minute."""
        return await self._run_in_time(work, self._places)

    async def run_long(self, work: Callable[[Link], T]) -> T:
        """Run blocking work that is likely to take most of that minute."""
        return await self._run_in_time(work, self._long_places)

    async def run_errand(self, work: Callable[[Link], T]) -> T:
        """Run blocking work that takes as long as it takes."""
        return await self._run(work, self._errand_places)

    async def run_for_image(self, work: Callable[[Link], T]) -> T:
        """Run blocking work that brings an image, which takes as long as its source does."""
        return await self._run(work, self._image_places)

    async def run_aside(self, work: Callable[[Link], T]) -> T:
        """Run blocking work that takes long and stands in the way of nothing else."""
        return await self._run(work, self._aside_places)

    async def run_apart(self, work: Callable[[Link], T]) -> T:
        """Run blocking work whose result keeps the connection, and closes it in the end."""
        try:
            async with asyncio.timeout(CALL_SECONDS):
                link = await self._link()
                try:
                    with core_errors(self._host.name):
                        return await link.worker.run(lambda: work(link))
                except BaseException:
                    _close(link)
                    raise
        except TimeoutError:
            raise self._silent() from None

    async def close(self) -> None:
        """Let go of all that is idle; what is under way lets go when it ends."""
        self._closed = True
        while self._idle:
            _close(self._idle.pop())

    async def _run_in_time(self, work: Callable[[Link], T], places: asyncio.Semaphore) -> T:
        try:
            async with asyncio.timeout(CALL_SECONDS):
                return await self._run(work, places)
        except TimeoutError:
            raise self._silent() from None

    async def _run(self, work: Callable[[Link], T], places: asyncio.Semaphore) -> T:
        await places.acquire()
        try:
            link = await self._link()
        except BaseException:
            places.release()
            raise
        loop = asyncio.get_running_loop()
        listens = self._appoint(link)

        def listening() -> T:
            if listens:
                link.listen(lambda *news: on_loop(loop, lambda: self._news(*news)))
            return work(link)

        # A thread that hangs keeps its place when nobody waits for it any more.
        ended = Ended(lambda: self._take_back(link, places), link.close)
        with core_errors(self._host.name):
            return await link.worker.run(listening, ended)

    def _appoint(self, link: Link) -> bool:
        """Say whether a connection is to bring the news from now on."""
        if self._listener is not None and self._listener.alive:
            return False
        self._listener = link
        return True

    def _take_back(self, link: Link, places: asyncio.Semaphore) -> None:
        places.release()
        if link is self._listener and not link.listens:
            self._listener = None
        if self._closed or not link.alive:
            _close(link)
        else:
            self._idle.append(link)

    async def _link(self) -> Link:
        """Return a connection that nobody else uses."""
        while True:
            if self._closed:
                raise Unreachable(f"the connection to host {self._host.name} was closed")
            while self._idle:
                link = self._idle.pop()
                if link.alive:
                    return link
                _close(link)
            await self._more()

    async def _more(self) -> None:
        """Have one more connection; one is made at a time, and whoever is first takes it."""
        now = asyncio.get_running_loop().time()
        if self._opening is None or self._opening.done():
            self._since = now
            self._opening = asyncio.create_task(self._open())
            self._opening.add_done_callback(_seen)
        # Whoever asks later than that hears at once what is known by then.
        patience = self._since + OPEN_SECONDS - now
        try:
            # Shielded: one who gives up must not have the next one start all over beside it.
            await asyncio.wait_for(asyncio.shield(self._opening), patience)
        except TimeoutError:
            raise self._silent() from None

    async def _open(self) -> None:
        credentials = await self._credentials()
        name = f"libvirt-open-{self._host.name}"
        opening = asyncio.create_task(in_thread(lambda: self._connect(credentials), name))
        await asyncio.wait({opening}, timeout=HANG_UP_SECONDS)
        if not opening.done() and (address := self._reach.tcp):
            log.warning("host %s fell silent while a connection was made", self._host.name)
            await in_thread(lambda: hang_up(address), "libvirt-hang-up")
        link = await opening
        if self._cpus is None:
            self._cpus = link.cpus
            for _ in range(FEWEST_AT_ONCE, min(MOST_AT_ONCE, link.cpus)):
                self._places.release()
        if self._closed:
            _close(link)
        else:
            self._idle.append(link)

    def _connect(self, credentials: Mapping[str, bytes]) -> Link:
        with self._reach.way(credentials) as way:
            try:
                return Link.open(way.uri)
            except libvirt.libvirtError as error:
                why = way.explained(sentence(error))
                raise Unreachable(f"host {self._host.name} cannot be reached: {why}") from error

    def _silent(self) -> Unreachable:
        return Unreachable(f"host {self._host.name} does not answer in time")


def _close(link: Link) -> None:
    """Close a connection while nobody waits for it: its daemon may hang."""
    threading.Thread(target=link.close, name="libvirt-close", daemon=True).start()


def _seen(task: "asyncio.Task[None]") -> None:
    """Take note of a failure that everybody stopped waiting for."""
    if not task.cancelled():
        task.exception()
