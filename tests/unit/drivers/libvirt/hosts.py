"""Machines on a real host, as small as they can be, and what may not be left of them."""

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from uuid import uuid4

import libvirt
import pytest

from guest_images import located
from libvirt_daemon import OF_ALL, LibvirtDaemon
from novacron.core.driver import Accepted
from novacron.core.errors import DriverError, Unreachable
from novacron.core.machine import MachinePlan, MachineRef, Observed, Power, Resources
from novacron.drivers.libvirt import LibvirtDriver, LibvirtHost
from novacron.drivers.libvirt.link import own_sockets
from novacron.images import Locate

__all__ = [
    "connections",
    "created",
    "deleted",
    "domain_of",
    "driver_for",
    "eventually",
    "left_on",
    "machine",
    "running",
    "threads",
    "unreachable_within",
]

SMALL = Resources(1, 192, 256)


def driver_for(
    daemon: LibvirtDaemon,
    uri: str | None = None,
    credentials: Mapping[str, bytes] | None = None,
    images: Locate = located,
) -> LibvirtDriver:
    """Return a driver for the host, reached as its owner says."""

    async def given() -> Mapping[str, bytes]:
        return credentials or {}

    return LibvirtDriver(LibvirtHost("far", uri or daemon.uri), images, given)


def machine(image: str = "builtin://tiny") -> MachinePlan:
    """Return a small machine without a network."""
    uid = str(uuid4())
    return MachinePlan(MachineRef(uid, "default", f"m-{uid[:8]}", "far"), SMALL, image)


@contextmanager
def domain_of(host: LibvirtDaemon, plan: MachinePlan) -> Iterator[libvirt.virDomain]:
    """Give somebody else's handle of a machine."""
    connection = libvirt.open(host.uri)
    try:
        yield connection.lookupByUUIDString(plan.ref.uid)
    finally:
        connection.close()


async def eventually(claim: Callable[[], Awaitable[bool]], what: str, seconds: float = 60) -> None:
    """Wait until something holds; failures of the host on the way are its own affair."""
    deadline = time.monotonic() + seconds
    last: object = None
    while True:
        try:
            if await claim():
                return
        except DriverError as error:
            last = error
        assert time.monotonic() < deadline, f"{what} not within {seconds} s; last: {last}"
        await asyncio.sleep(0.1)


async def created(driver: LibvirtDriver, plan: MachinePlan, seconds: float = 60) -> Observed:
    """Have a machine made, as a controller would: ask again until it is there."""
    seen: list[Observed] = []

    async def made() -> bool:
        found = await driver.observe(plan.ref)
        if found is None or found.abandoned:
            accepted: Accepted = await driver.create(plan)
            await asyncio.sleep(accepted.look_again.total_seconds())
            return False
        seen[:] = [found]
        return found.changing is None

    await eventually(made, "the machine is made", seconds)
    return seen[0]


async def deleted(driver: LibvirtDriver, plan: MachinePlan) -> None:
    """Have a machine removed, as a controller would."""

    async def gone() -> bool:
        await driver.delete(plan.ref)
        return await driver.observe(plan.ref) is None

    await eventually(gone, "the machine is gone")


async def unreachable_within(seconds: float, call: Callable[[], Awaitable[object]]) -> str:
    """Return what a call says of a host that does not answer; it must say so in time."""
    begun = time.monotonic()
    with pytest.raises(Unreachable) as caught:
        await call()
    took = time.monotonic() - begun
    assert took < seconds, f"{caught.value}, but only after {took:.1f} s"
    return str(caught.value)


def left_on(daemon: LibvirtDaemon) -> set[str]:
    """Return every domain and every volume that is no image, asked for without our code."""
    connection = libvirt.open(daemon.uri)
    try:
        left = {domain.name() for domain in connection.listAllDomains()}
        for pool in connection.listAllStoragePools():
            pool.refresh()
            left |= {name for name in pool.listVolumes() if not name.startswith(OF_ALL)}
        return left
    finally:
        connection.close()


def threads() -> set[int]:
    """Return the threads of drivers, at work or at the service of a connection."""
    found = [each for each in threading.enumerate() if each.name.startswith("libvirt-")]
    return {each.ident or 0 for each in found if each.name != "libvirt-events"}


def connections() -> set[int]:
    """Return the connections of this process to libvirt daemons, each by a number of its own."""
    found: set[int] = set()
    for ours in own_sockets():
        with suppress(OSError):
            # Under the name that the daemon sees.
            if ours.getpeername() == "/run/libvirt/libvirt-sock":
                found.add(os.fstat(ours.fileno()).st_ino)
    return found


async def running(driver: LibvirtDriver) -> MachinePlan:
    """Return a machine that was just started."""
    plan = machine()
    await created(driver, plan)
    await driver.set_power(plan.ref, Power.ON)
    return plan
