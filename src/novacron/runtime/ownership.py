"""What an operator asks before it acts: am I the leader, is this object mine?

The protocol, and its simplest case: a process that is alone. Several processes share the work
by ``Claims``.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from novacron.runtime.resource import Key
from novacron.runtime.shards import LEADER

__all__ = ["Handover", "Ownership", "Sole"]

Handover = Callable[[str], Awaitable[None]]


class Ownership(Protocol):
    """Who works on what. A claim is ``leader`` or ``shard-N``.

    Both kinds of it tell of their hand-overs: ``gained`` is awaited before a claim counts as
    held (look at the world afresh in it), and ``begun`` is called as soon as it does (begin the
    work in it). ``drain`` is awaited after it no longer counts and before another may have it
    (let work in progress end in it).
    """

    @property
    def held(self) -> frozenset[str]:
        """The claims under which this process may act now."""

    @property
    def leader(self) -> bool:
        """Whether this process makes the decisions that only one may make."""

    def claim_for(self, key: Key, /) -> str:
        """Return the claim under which an object is worked on."""

    def owns(self, key: Key, /) -> bool:
        """Say whether this process works on an object now."""

    async def run(self) -> None:
        """Take part until stopped and everything is handed over."""

    def stop(self) -> None:
        """Begin to hand everything over; ``run`` returns when that is done."""


async def nothing(_claim: str) -> None:
    """Do nothing at a hand-over."""


def nothing_yet(_claim: str) -> None:
    """Do nothing when a claim begins to count."""


@dataclass(slots=True)
class Sole:
    """Ownership of everything without any lease: the caller vouches that no other runs."""

    gained: Handover = field(default=nothing)
    begun: Callable[[str], None] = field(default=nothing_yet)
    drain: Handover = field(default=nothing)
    _leader: bool = False
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def held(self) -> frozenset[str]:
        """Leadership, which covers everything."""
        return frozenset({LEADER} if self._leader else ())

    @property
    def leader(self) -> bool:
        """True while it runs."""
        return self._leader

    def claim_for(self, _key: Key, /) -> str:
        """Return leadership for every key."""
        return LEADER

    def owns(self, _key: Key, /) -> bool:
        """Own every key while it runs."""
        return self._leader

    async def run(self) -> None:
        """Hold everything until stopped."""
        await self.gained(LEADER)
        self._leader = True
        self.begun(LEADER)
        await self._stopping.wait()
        self._leader = False
        await self.drain(LEADER)

    def stop(self) -> None:
        """End ``run`` after the drain."""
        self._stopping.set()
