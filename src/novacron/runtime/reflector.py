"""Keeps a cache current: lists once page by page, then watches, resumes, and lists again on 410."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from novacron.runtime.cache import Cache
from novacron.runtime.client import PAGE_SIZE, Client, Page
from novacron.runtime.errors import ApiError, Gone, NotFound, Unreachable
from novacron.runtime.resource import Key, key_of

__all__ = ["Reflector", "WatchObserver"]

log = logging.getLogger(__name__)

# Spread over time, so that a restarted API server does not meet all its watchers at once.
SHORTEST_WATCH_SECONDS, LONGEST_WATCH_SECONDS = 300, 600
LONGEST_PAUSE_SECONDS = 10.0
# A kind that the server does not know comes when somebody installs it.
ABSENT_SECONDS = 60.0
# A server that ends watches at once is going away; asking again at once would not help it.
SHORTEST_USEFUL_SECONDS = 1.0


class WatchObserver(Protocol):
    """Is told whenever a watch had to be begun again."""

    def watch_restarted(self, resource: str, why: str) -> None:
        """Count one restart."""


@dataclass(slots=True)
class Reflector:
    """One source of a cache: one namespace, or all of them, or what selectors pick of that.

    ``selector`` is about fields. ``trouble`` is why it cannot be followed at present. What is
    ``optional`` may be a kind that the server does not know, which is looked for now and then.
    """

    client: Client
    cache: Cache
    namespace: str = ""
    observer: WatchObserver | None = None
    selector: str | None = None
    labels: str | None = None
    trouble: ApiError | None = None
    optional: bool = False
    page_size: int = PAGE_SIZE
    random: Random = field(default_factory=Random)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _version: str | None = None
    _failures: int = 0
    _listing: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self.cache.expect(self.namespace)

    async def run(self) -> None:
        """List and watch for ever; what fails is tried again with growing pauses."""
        while True:
            try:
                if self._version is None:
                    await self.refresh()
                await self._watch()
                self._restarted("timeout")
            except Gone as error:
                self._version = None
                self._restarted("gone")
                await self._pause(error)
            except ApiError as error:
                self._restarted("error")
                await self._pause(error)

    async def refresh(self) -> None:
        """List everything as it is now; whoever took over somebody's work needs it fresh."""
        async with self._listing:
            pages = self.client.pages(
                self.cache.resource,
                self._where,
                limit=self.page_size,
                selector=self.selector,
                labels=self.labels,
            )
            async with aclosing(pages):
                await self._take_in(pages)
        self._recovered()

    async def _take_in(self, pages: AsyncIterator[Page]) -> None:
        present: set[Key] = set()
        version = ""
        async for page in pages:
            version = page.resource_version
            if self._is_past(version):
                return
            for obj in page.items:
                self.cache.seen(obj)
                present.add(key_of(obj))
        self.cache.listed(self.namespace, present, version)
        if self._version is None:
            self._version = version

    def _is_past(self, version: str) -> bool:
        # While a list is read, the watch may bring news that the list does not know yet, such as
        # deletions; the cache is then as fresh as the list already, and the list would undo them.
        return self._version is not None and int(self._version) >= int(version)

    async def _watch(self) -> None:
        assert self._version is not None
        seconds = self.random.randint(SHORTEST_WATCH_SECONDS, LONGEST_WATCH_SECONDS)
        loop = asyncio.get_running_loop()
        begun, quiet = loop.time(), True
        events = self.client.watch(
            self.cache.resource,
            self._where,
            since=self._version,
            seconds=seconds,
            selector=self.selector,
            labels=self.labels,
            begun=self._recovered,
        )
        async for event in events:
            self._failures, quiet = 0, False
            if event.type == "DELETED":
                self.cache.gone(event.object)
            elif event.type != "BOOKMARK":
                self.cache.seen(event.object)
            self._version = event.object["metadata"]["resourceVersion"]
        if quiet and loop.time() - begun < SHORTEST_USEFUL_SECONDS:
            raise Unreachable("the watch ended as soon as it had begun")

    async def _pause(self, error: ApiError) -> None:
        self._failures += 1
        self.trouble = error
        if self.optional and isinstance(error, NotFound):
            await self.sleep(ABSENT_SECONDS)
            return
        pause = min(0.1 * 2.0 ** min(self._failures, 10), LONGEST_PAUSE_SECONDS)
        pause = max(pause * self.random.uniform(0.5, 1.0), error.retry_after or 0.0)
        log.warning(
            "cannot follow %s: %s; again in %.1f s", self.cache.resource, error.message, pause
        )
        await self.sleep(pause)

    def _recovered(self) -> None:
        self.trouble = None

    @property
    def _where(self) -> str | None:
        return self.namespace or None

    def _restarted(self, why: str) -> None:
        if self.observer is not None:
            self.observer.watch_restarted(str(self.cache.resource), why)
