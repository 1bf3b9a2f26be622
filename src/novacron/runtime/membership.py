"""This process among its peers: a heartbeat lease of its own, and a look at those of the others.

The heartbeat is the fence of the client: a process that could not renew in time stops writing,
and leaves, before anyone may take over what it held. A process whose API server is away for
longer than that leaves too, even when it is alone: it cannot know that it is. Whoever started
it starts it again.
"""

import asyncio
import logging
import os
import re
import secrets
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NoReturn

from novacron.runtime.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    LeaseLost,
    NotFound,
    Overloaded,
    Unreachable,
)
from novacron.runtime.leases import Lease, Leases, LeaseTiming
from novacron.runtime.sightings import Sightings

__all__ = ["EXIT_LEASE_LOST", "Membership", "View", "boottime", "exit_at_once", "unique_identity"]

log = logging.getLogger(__name__)

# The code of sysexits.h for "try again": whoever started the process should.
EXIT_LEASE_LOST = 75
MEMBER = "member-"
# Leases of the dead are kept a while for people who look for what happened.
SWEEP_AFTER_DURATIONS = 10


def boottime() -> float:
    """Return seconds on a clock that also counts while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def unique_identity() -> str:
    """Return a name for this process that no other has or had."""
    host = re.sub(r"[^a-z0-9-]+", "-", socket.gethostname().lower()).strip("-")[:48]
    return f"{host or 'process'}-{secrets.token_hex(4)}"


def exit_at_once() -> None:
    """End the process without any goodbye: whatever it still did could be a second time."""
    os._exit(EXIT_LEASE_LOST)


@dataclass(frozen=True, slots=True)
class View:
    """All leases as one look found them, by identity and by claim."""

    members: dict[str, Lease]
    claims: dict[str, Lease]


@dataclass(slots=True)
class Membership:
    """One process's heartbeat, which is the fence of its writes, and its view of the others."""

    leases: Leases
    timing: LeaseTiming = field(default_factory=LeaseTiming)
    identity: str = field(default_factory=unique_identity)
    on_lost: Callable[[], None] = exit_at_once
    clock: Callable[[], float] = boottime
    wall: Callable[[], datetime] = lambda: datetime.now(UTC)
    notes: dict[str, str] = field(default_factory=dict)
    sightings: Sightings = field(init=False)
    _lease: Lease | None = None
    _renewed: float = 0.0
    _over: bool = False
    _hurry: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.sightings = Sightings(self.timing.duration)

    def seconds_left(self) -> float:
        """Return how long writes stay safe; past that, leave and raise LeaseLost."""
        if self._over or self._lease is None:
            raise LeaseLost(f"{self.identity} is no member")
        left = self._renewed + self.timing.renew_deadline.total_seconds() - self.clock()
        if left <= 0:
            seconds = self.timing.renew_deadline.total_seconds()
            self.lose(f"the heartbeat was not renewed within {seconds:g} s")
        return left

    def lose(self, why: str) -> NoReturn:
        """Close the fence for good and leave the process."""
        self._over = True
        log.critical("%s lost its lease and leaves at once: %s", self.identity, why)
        self.on_lost()
        raise LeaseLost(why)

    async def join(self) -> None:
        """Create the heartbeat, patiently while the API server does not answer."""
        lease = Lease.new(f"{self.leases.group}-{MEMBER}{self.identity}", self.timing)
        lease = lease.taken(self.identity, self.wall())
        unheard = False
        while self._lease is None:
            begun = self.clock()
            try:
                self._lease = await self._first(lease, unheard=unheard)
                self._renewed = begun
            except (Unreachable, Overloaded) as error:
                log.warning("%s cannot join yet: %s", self.identity, error)
                unheard = True
                await nap(self._hurry, self.timing.retry.total_seconds())

    async def _first(self, lease: Lease, *, unheard: bool) -> Lease:
        try:
            return await self.leases.create(lease.renewed(self.wall(), self.notes))
        except AlreadyExists:
            # Ours if an earlier try took effect unheard; otherwise two processes share a name.
            if not unheard:
                raise
            found = await self.leases.get(lease.name)
            return await self.leases.replace(found.renewed(self.wall(), self.notes))

    async def run(self) -> None:
        """Renew the heartbeat until cancelled."""
        while True:
            begun = self.clock()
            renewed = await self.renew()
            pause = self.timing.retry.total_seconds() * (1.0 if renewed else 0.25)
            await nap(self._hurry, min(begun + pause - self.clock(), self.seconds_left()))

    def hurry(self) -> None:
        """Renew at once, for notes that others should read soon."""
        self._hurry.set()

    async def renew(self) -> bool:
        """Try once to renew the heartbeat; say whether that worked."""
        begun = self.clock()
        try:
            async with asyncio.timeout(self.seconds_left()):
                lease = await self._replace_heartbeat()
        except NotFound:
            self.lose("somebody deleted the heartbeat")
        except (ApiError, TimeoutError) as error:
            log.warning("heartbeat of %s not renewed: %s", self.identity, str(error) or "no answer")
            return False
        # An answer past the old deadline comes too late: others may have taken over meanwhile.
        self.seconds_left()
        self._lease, self._renewed = lease, begun
        return True

    async def _replace_heartbeat(self) -> Lease:
        assert self._lease
        try:
            return await self.leases.replace(self._lease.renewed(self.wall(), self.notes))
        except Conflict:
            # A renewal that went unheard took effect, or somebody edited the object.
            found = await self.leases.get(self._lease.name)
            if found.holder != self.identity:
                self.lose(f"the heartbeat names {found.holder or 'nobody'}")
            return await self.leases.replace(found.renewed(self.wall(), self.notes))

    async def leave(self) -> None:
        """Remove the heartbeat after everything was let go; no write is safe any more."""
        self._over = True
        if self._lease:
            await self._delete(self._lease)

    async def look(self) -> View:
        """Read all leases once, and note who showed a sign of life."""
        begun = self.clock()
        found = await self.leases.list()
        ended = self.clock()
        view = _view(found, f"{self.leases.group}-")
        holders = {lease.holder for lease in view.claims.values() if lease.holder}
        members = {who: lease.version for who, lease in view.members.items()}
        versions: dict[str, str | None] = {**dict.fromkeys(holders), **members}
        versions.pop(self.identity, None)
        self.sightings.record(versions, begun, ended)
        return view

    async def sweep(self, view: View) -> None:
        """Remove the heartbeats of those who died long ago and hold nothing."""
        holders = {lease.holder for lease in view.claims.values()}
        for who in view.members.keys() - holders:
            if self.sightings.silence(who) >= SWEEP_AFTER_DURATIONS * self.timing.duration:
                await self._delete(view.members[who])

    async def _delete(self, lease: Lease) -> None:
        try:
            await self.leases.delete(lease)
        except NotFound:
            pass
        except ApiError as error:
            log.warning("lease %s not removed: %s", lease.name, error)


def _view(leases: Iterable[Lease], prefix: str) -> View:
    members: dict[str, Lease] = {}
    claims: dict[str, Lease] = {}
    for lease in leases:
        name = lease.name.removeprefix(prefix)
        if name.startswith(MEMBER):
            members[name.removeprefix(MEMBER)] = lease
        else:
            claims[name] = lease
    return View(members, claims)


async def nap(alarm: asyncio.Event, seconds: float) -> None:
    """Sleep, but not past the alarm, which is then off."""
    with suppress(TimeoutError):
        async with asyncio.timeout(max(0.0, seconds)):
            await alarm.wait()
    alarm.clear()
