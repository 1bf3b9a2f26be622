"""Pairs of hosts between which a driver's machines move."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Protocol

import libvirt

from fleet import shared_fleet
from guest_images import located
from libvirt_daemon import OF_ALL
from novacron.core.driver import Driver, Inventory
from novacron.core.machine import MachinePlan, MachineRef, Observed, Resources
from novacron.core.migration import LiveMigration
from novacron.drivers.libvirt import LibvirtDriver, LibvirtHost
from novacron.drivers.libvirt.host import ClassPool
from novacron.drivers.simulation import Delays, SimulatedHost, SimulationDriver

__all__ = ["PAIRS", "Mover", "Pair", "PairUnderTest"]

STEP = timedelta(seconds=1)
STEPS = 240
SIZE = Resources(1, 512, 256)
NO_CLASSES: Mapping[str, Mapping[str, ClassPool]] = {}


class Mover(Driver, Inventory, LiveMigration, Protocol):
    """A driver that moves machines."""


@dataclass(frozen=True)
class Pair:
    """Two hosts with nothing on them."""

    connect: Callable[[str], Mover]
    pass_time: Callable[[timedelta], Awaitable[None]]
    left_behind: Callable[[], list[str]]
    uid: str = "0c2d3f0e-6f0e-4a53-9d3d-5f4c4b2a1e00"

    def plan(self, host: str) -> MachinePlan:
        """Return the one machine as it is to be on a host."""
        ref = MachineRef(self.uid, "default", "traveller", host)
        return MachinePlan(ref, SIZE, "builtin://tiny")

    async def settled(self, driver: Mover, host: str) -> Observed | None:
        """Return how the machine is on a host when nothing is under way there."""
        for _ in range(STEPS):
            # In this order: what was seen before its move ended is not how it is.
            moving = await driver.movement(self.plan(host).ref)
            seen = await driver.observe(self.plan(host).ref)
            if moving is None and (seen is None or seen.changing is None):
                return seen
            await self.pass_time(STEP)
        raise AssertionError(f"still changing after {STEPS * STEP}")


@dataclass(frozen=True)
class PairUnderTest:
    """A driver with two hosts."""

    name: str
    pair: Callable[[Path], AbstractAsyncContextManager[Pair]]
    slow: bool = False


@dataclass
class HandClock:
    """A clock that stands still until it is moved."""

    now: datetime = field(default_factory=lambda: datetime(2026, 1, 1, tzinfo=UTC))

    def __call__(self) -> datetime:
        return self.now

    async def pass_time(self, time: timedelta) -> None:
        self.now += time


@asynccontextmanager
async def simulated(directory: Path, *, move: timedelta) -> AsyncIterator[Pair]:
    """Two simulated hosts of one file."""
    clock, opened = HandClock(), list[SimulationDriver]()

    def connect(name: str) -> SimulationDriver:
        host = SimulatedHost(name, Resources(4, 4096, 65536), delays=Delays(move=move))
        opened.append(SimulationDriver(directory / "pair.db", host, clock=clock))
        return opened[-1]

    yield Pair(connect, clock.pass_time, list)
    for driver in opened:
        await driver.close()


@asynccontextmanager
async def real(
    _: Path, *, pool: str, classes: Mapping[str, Mapping[str, ClassPool]] = NO_CLASSES
) -> AsyncIterator[Pair]:
    """Two real hosts, with disks that both reach or of their own, and storage classes of each."""
    fleet, opened = shared_fleet(), list[LibvirtDriver]()
    number = {"a": 1, "b": 2}

    def connect(name: str) -> LibvirtDriver:
        there = fleet.hosts[number[name] - 1]
        host = LibvirtHost(
            name,
            there.uri,
            pool=pool,
            network=there.network,
            storage_classes=classes.get(name, {}),
            migration_uri=fleet.peer_uri(number[name]),
            migration_tls=True,
        )
        opened.append(LibvirtDriver(host, located))
        return opened[-1]

    try:
        yield Pair(connect, _real_time, partial(_left_behind, pool))
    finally:
        for driver in opened:
            await driver.close()
        _clear()


async def _real_time(_: timedelta) -> None:
    await asyncio.sleep(0.25)


def _left_behind(pool: str) -> list[str]:
    """Return what is a machine's in the pools of both hosts, each once."""
    found: set[str] = set()
    for host in shared_fleet().hosts:
        connection = libvirt.open(host.uri)
        for there in connection.listAllStoragePools():  # a host that had nothing yet has no pool
            if there.name() == pool:
                there.refresh()
                found |= {name for name in there.listVolumes() if not name.startswith(OF_ALL)}
        found |= {domain.name() for domain in connection.listAllDomains()}
        connection.close()
    return sorted(found)


def _clear() -> None:
    for host in shared_fleet().hosts:
        connection = libvirt.open(host.uri)
        for domain in connection.listAllDomains():
            with suppress(libvirt.libvirtError):
                domain.destroy()
            with suppress(libvirt.libvirtError):
                domain.undefineFlags(libvirt.VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA)
        for pool in connection.listAllStoragePools():
            pool.refresh()
            for volume in pool.listAllVolumes():
                if not volume.name().startswith(OF_ALL):
                    volume.delete()
        connection.close()


PAIRS = (
    PairUnderTest("simulation", partial(simulated, move=timedelta(0))),
    PairUnderTest("simulation-slow", partial(simulated, move=timedelta(seconds=9))),
    PairUnderTest("libvirt-shared", partial(real, pool="shared"), slow=True),
    PairUnderTest("libvirt-apart", partial(real, pool="novacron"), slow=True),
)
