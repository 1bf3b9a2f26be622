"""Blocking work on the machines of one libvirt host, with what is known of the host kept at hand.

Each thing that a host can do with its machines is a class of its own on top of this one, in a file
of its own; the driver is all of them together.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TypeVar
from weakref import WeakValueDictionary

from novacron.core.errors import Busy
from novacron.core.machine import MachineRef, Observed, Power
from novacron.drivers.libvirt.build import Builder
from novacron.drivers.libvirt.connection import Connection
from novacron.drivers.libvirt.facts import Machinery
from novacron.drivers.libvirt.homecoming import set_right
from novacron.drivers.libvirt.host import Credentials, LibvirtHost
from novacron.drivers.libvirt.link import Link
from novacron.drivers.libvirt.look import Domain, Known, find, observed
from novacron.drivers.libvirt.pool import Pool, open_pool
from novacron.drivers.libvirt.standstill import hindrance

__all__ = ["HostWork", "as_it_is", "no_credentials", "present", "seen_by"]

T = TypeVar("T")


async def no_credentials() -> Mapping[str, bytes]:
    """Return nothing: a local socket needs none."""
    return {}


class HostWork:
    """Runs blocking work on one host, in a thread and with a connection that stands."""

    def __init__(self, host: LibvirtHost, credentials: Credentials = no_credentials) -> None:
        self._host = host
        self._connection = Connection(host, credentials, self._heard)
        self._machinery: Machinery | None = None
        self._pool: Pool | None = None
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def _turn(self, uid: str) -> AsyncIterator[None]:
        """Have nobody else write a machine down, of what was read before that."""
        lock = self._turns.setdefault(uid, asyncio.Lock())
        async with lock:
            yield

    def _is_being_written(self, uid: str) -> bool:
        return uid in self._turns

    def _heard(self, uuid: str, power: Power | None) -> None:
        """Take note that a domain changed, perhaps only in that it has this power now."""

    async def _work(self, work: Callable[[Builder], T]) -> T:
        return await self._connection.run(lambda link: self._run(link, work))

    async def _work_long(self, work: Callable[[Builder], T]) -> T:
        return await self._connection.run_long(lambda link: self._run(link, work))

    async def _work_on_errand(self, work: Callable[[Builder], T]) -> T:
        return await self._connection.run_errand(lambda link: self._run(link, work))

    async def _work_for_image(self, work: Callable[[Builder], T]) -> T:
        return await self._connection.run_for_image(lambda link: self._run(link, work))

    def _run(self, link: Link, work: Callable[[Builder], T]) -> T:
        try:
            return work(self._builder(link))
        except BaseException:
            # Perhaps because the host is not any more what it was when it was read.
            self._forget_premises()
            link.pools.clear()
            raise

    def _forget_premises(self) -> None:
        """Have the host's machinery and pool read anew by the next work."""
        self._machinery = self._pool = None

    def _builder(self, link: Link) -> Builder:
        connection, machinery, pool = link.connection, self._machinery, self._pool
        if machinery is None:
            machinery = self._machinery = Machinery(connection, self._host.cpu_model)
        if pool is None:
            pool = self._pool = open_pool(connection, self._host)
        return Builder(self._host, machinery, pool.over(link))


def as_it_is(builder: Builder, ref: MachineRef) -> Domain:
    """Return the domain of a machine that must be there, for who only looks."""
    domain = find(builder.connection, ref.uid)
    if domain is None:
        raise Busy(f"{ref.name} is not on host {builder.host.name} any more")
    return domain


def present(builder: Builder, ref: MachineRef) -> Domain:
    """Return the domain of a machine that must be there, at home if a move left it half-way."""
    return set_right(builder.pool, as_it_is(builder, ref))


def seen_by(builder: Builder, domain: Domain, known: Known, *, complete: bool) -> Observed:
    """Return what there is to say of a domain that was found."""
    volumes = domain.configured.mark.volumes
    files = frozenset(each.key for each in volumes if builder.storage.there(each))
    hindered = hindrance(domain, builder.host.name)
    return observed(domain, known, complete=complete, files=files, hindered=hindered)
