"""Events: what happened, in words a user sees in ``kubectl describe``.

Posted in the background and never in the way: equal events are counted instead of repeated, and
past a burst they trickle, so that a thousand new objects do not cost a thousand writes at once.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random

from novacron.runtime.client import Client
from novacron.runtime.errors import ApiError, LeaseLost, NotFound
from novacron.runtime.resource import EVENTS, Object, key_of

__all__ = ["Events"]

log = logging.getLogger(__name__)

LONGEST_BACKLOG = 5_000
REMEMBERED = 5_000
BURST = 25
PER_SECOND = 5.0
LONGEST_MESSAGE = 1024
# A name has 253 characters at most, and ours ends in a dot and 16 digits.
LONGEST_STEM = 253 - 17


@dataclass(slots=True)
class _Posted:
    name: str
    namespace: str
    count: int


@dataclass(slots=True)
class _Event:
    about: Object
    kind: str
    reason: str
    message: str
    times: int = 1

    @property
    def identity(self) -> tuple[str, str, str]:
        return (self.about["uid"], self.reason, self.message)


@dataclass(slots=True)
class Events:
    """A backlog of events and the task that posts it."""

    client: Client
    reporter: str
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    random: Random = field(default_factory=Random)
    _backlog: "OrderedDict[tuple[str, str, str], _Event]" = field(default_factory=OrderedDict)
    _posted: "OrderedDict[tuple[str, str, str], _Posted]" = field(default_factory=OrderedDict)
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)
    _allowance: float = BURST
    _refilled: float = 0.0

    def normal(self, obj: Object, reason: str, message: str) -> None:
        """Say that something went as it should."""
        self._say(obj, "Normal", reason, message)

    def warning(self, obj: Object, reason: str, message: str) -> None:
        """Say that something needs a look."""
        self._say(obj, "Warning", reason, message)

    def _say(self, obj: Object, kind: str, reason: str, message: str) -> None:
        key = key_of(obj)
        about = {
            "apiVersion": obj["apiVersion"],
            "kind": obj["kind"],
            "name": key.name,
            "uid": obj["metadata"]["uid"],
            **({"namespace": key.namespace} if key.namespace else {}),
        }
        event = _Event(about, kind, reason, message[:LONGEST_MESSAGE])
        waiting = self._backlog.get(event.identity)
        if waiting:
            waiting.times += 1
        elif len(self._backlog) < LONGEST_BACKLOG:
            self._backlog[event.identity] = event
            self._arrived.set()

    async def run(self) -> None:
        """Post events as they come, no faster than the allowance."""
        while True:
            await self._arrived.wait()
            if not self._backlog:
                self._arrived.clear()
                continue
            await self._earn()
            await self._post_oldest()

    async def flush(self) -> None:
        """Post what is left, as fast as it goes; for the end of the process."""
        while self._backlog:
            await self._post_oldest()

    async def _earn(self) -> None:
        now = asyncio.get_running_loop().time()
        self._allowance = min(BURST, self._allowance + (now - self._refilled) * PER_SECOND)
        self._refilled = now
        if self._allowance < 1:
            await asyncio.sleep((1 - self._allowance) / PER_SECOND)
            self._allowance = 1
            self._refilled = asyncio.get_running_loop().time()
        self._allowance -= 1

    async def _post_oldest(self) -> None:
        identity, event = self._backlog.popitem(last=False)
        try:
            posted = self._posted.pop(identity, None)
            self._posted[identity] = await self._post(event, posted)
        except (ApiError, LeaseLost) as error:
            log.debug("event %s not posted: %s", event.reason, error)
        while len(self._posted) > REMEMBERED:
            self._posted.popitem(last=False)

    async def _post(self, event: _Event, posted: _Posted | None) -> _Posted:
        now = self.clock().strftime("%Y-%m-%dT%H:%M:%SZ")
        if posted:
            total = posted.count + event.times
            try:
                body = {"count": total, "lastTimestamp": now}
                await self.client.patch(EVENTS, posted.name, body, posted.namespace)
                return _Posted(posted.name, posted.namespace, total)
            except NotFound:
                pass  # events live an hour; this one is past and begins anew
        return await self._create(event, now)

    async def _create(self, event: _Event, now: str) -> _Posted:
        # Events about cluster-scoped objects live in "default", as the server demands.
        namespace = event.about.get("namespace", "default")
        stem = event.about["name"][:LONGEST_STEM].rstrip("-.")
        name = f"{stem}.{self.random.getrandbits(64):016x}"
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": event.about,
            "type": event.kind,
            "reason": event.reason,
            "message": event.message,
            "source": {"component": self.reporter},
            "reportingComponent": self.reporter,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": event.times,
        }
        await self.client.create(EVENTS, body, namespace)
        return _Posted(name, namespace, event.times)
