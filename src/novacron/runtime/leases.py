"""Lease objects: their timing, how they read and are written, and where they are kept.

Knows the Kubernetes Lease and nothing of who wants one: membership and claims decide that. A
replacement carries the resourceVersion it was read at, so it is a compare-and-swap.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

import orjson

from novacron.runtime.client import Client, Request
from novacron.runtime.errors import Unreachable
from novacron.runtime.resource import LEASES, Object

__all__ = ["ApiLeases", "Lease", "LeaseTiming", "Leases", "microtime"]

# All leases of one operator carry it, so that one request lists them and nobody else's.
GROUP_LABEL = "novacron.io/lease-group"
TYPE = {"apiVersion": LEASES.api_version, "kind": LEASES.kind}


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """When a member renews, when it stops, and when others may take what it held.

    A renewal that began at s closes the fence at s + renew_deadline. Others saw it no earlier
    than s, so they take over no earlier than s + duration: between the two, ``duration -
    renew_deadline`` (3 s) is left for writes on their way to die out, and for clocks that do
    not run equally fast. They saw it no later than ``retry`` after it was written and look
    again the moment it is due, so a killed process is replaced within duration + retry (11 s)
    and a few requests. ``renew_deadline - retry`` (4 s) is how long the API server may refuse
    connections at the worst moment without costing a process its life.
    """

    duration: timedelta = timedelta(seconds=9)
    renew_deadline: timedelta = timedelta(seconds=6)
    retry: timedelta = timedelta(seconds=2)

    def __post_init__(self) -> None:
        if not timedelta() < self.retry < self.renew_deadline < self.duration:
            raise ValueError(
                "a lease needs retry < renew deadline < duration, not "
                f"{self.retry} < {self.renew_deadline} < {self.duration}"
            )


@dataclass(frozen=True, slots=True)
class Lease:
    """One Lease object; changes return a new one, fields of others are kept."""

    body: Object

    @classmethod
    def new(cls, name: str, timing: LeaseTiming) -> "Lease":
        """Return a lease that nobody holds yet and no server has seen."""
        # The API knows whole seconds; a claim of less than our true patience would mislead.
        seconds = max(1, -(-timing.duration // timedelta(seconds=1)))
        spec = {"leaseDurationSeconds": seconds, "leaseTransitions": 0}
        return cls({"metadata": {"name": name}, "spec": spec})

    @property
    def name(self) -> str:
        """The object's name."""
        name: str = self.body["metadata"]["name"]
        return name

    @property
    def version(self) -> str:
        """The resourceVersion, by which a change is noticed."""
        version: str = self.body["metadata"].get("resourceVersion", "")
        return version

    @property
    def uid(self) -> str:
        """The UID, empty before it was created."""
        uid: str = self.body["metadata"].get("uid", "")
        return uid

    @property
    def holder(self) -> str:
        """The identity of who holds it, empty when nobody does."""
        return self.body["spec"].get("holderIdentity") or ""

    @property
    def notes(self) -> Mapping[str, str]:
        """What the holder says of itself: the annotations."""
        return self.body["metadata"].get("annotations") or {}

    def taken(self, holder: str, now: datetime) -> "Lease":
        """Return it in new hands."""
        transitions = self.body["spec"].get("leaseTransitions") or 0
        return self._with(
            holderIdentity=holder,
            acquireTime=microtime(now),
            renewTime=microtime(now),
            leaseTransitions=transitions + (1 if self.version else 0),
        )

    def renewed(self, now: datetime, notes: Mapping[str, str]) -> "Lease":
        """Return it with a new life sign and what its holder says of itself."""
        renewed = self._with(renewTime=microtime(now))
        metadata = {**self.body["metadata"], "annotations": {**self.notes, **notes}}
        return Lease({**renewed.body, "metadata": metadata})

    def released(self, now: datetime) -> "Lease":
        """Return it in nobody's hands."""
        return self._with(holderIdentity="", renewTime=microtime(now))

    def _with(self, **spec: str | int) -> "Lease":
        return Lease({**self.body, "spec": {**self.body["spec"], **spec}})


class Leases(Protocol):
    """The leases of one group of processes; raises what the client raises."""

    @property
    def group(self) -> str:
        """The group's name, with which the names of its leases begin."""

    async def list(self) -> list[Lease]:
        """Return all of them as they are now, never from an old copy."""

    async def get(self, name: str) -> Lease:
        """Return one."""

    async def create(self, lease: Lease) -> Lease:
        """Create one, or raise AlreadyExists."""

    async def replace(self, lease: Lease) -> Lease:
        """Replace the one that was read, or raise Conflict when it is another by now."""

    async def delete(self, lease: Lease) -> None:
        """Delete this very one."""


@dataclass(frozen=True, slots=True)
class ApiLeases:
    """Leases at the API server, each request within its own short patience."""

    client: Client
    namespace: str
    group: str = "novacron"
    patience: timedelta = timedelta(seconds=2)

    def __post_init__(self) -> None:
        if self.client.fence is not None:
            raise ValueError("the leases that open the fence cannot be written behind it")

    async def list(self) -> list[Lease]:
        """Return all leases of the group, read consistently."""
        query = {"labelSelector": f"{GROUP_LABEL}={self.group}"}
        request = Request("list", "GET", LEASES.path(self.namespace), query)
        async with self._patience():
            answer = orjson.loads(await self.client.send(request))
        return [Lease(item) for item in answer.get("items") or []]

    async def get(self, name: str) -> Lease:
        """Return one lease."""
        async with self._patience():
            return Lease(await self.client.get(LEASES, name, self.namespace))

    async def create(self, lease: Lease) -> Lease:
        """Create a lease with the group's label."""
        where = {"namespace": self.namespace, "labels": {GROUP_LABEL: self.group}}
        body = {**lease.body, "metadata": {**lease.body["metadata"], **where}}
        async with self._patience():
            return Lease(await self.client.create(LEASES, TYPE | body))

    async def replace(self, lease: Lease) -> Lease:
        """Replace a lease; its resourceVersion and UID are preconditions."""
        async with self._patience():
            # Items of a list do not name their type.
            return Lease(await self.client.replace(LEASES, TYPE | lease.body))

    async def delete(self, lease: Lease) -> None:
        """Delete a lease by its UID."""
        async with self._patience():
            await self.client.delete(LEASES, lease.name, self.namespace, uid=lease.uid)

    @asynccontextmanager
    async def _patience(self) -> AsyncIterator[None]:
        """Bound a request; its end is no answer: a write may or may not have taken effect."""
        try:
            async with asyncio.timeout(self.patience.total_seconds()):
                yield
        except TimeoutError as error:
            seconds = self.patience.total_seconds()
            raise Unreachable(f"no answer about leases within {seconds:g} s") from error


def microtime(moment: datetime) -> str:
    """Write a moment as the API's MicroTime."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
