"""The simulation driver, once in no time at all and once with delays on a clock we move."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from conformance.under_test import Bench, DriverUnderTest
from novacron.core.machine import Resources
from novacron.core.volume import StorageClass
from novacron.drivers.simulation import Delays, SimulatedHost, SimulationDriver, World

ROOM = Resources(8, 8192, 65536)
CLASSES = (StorageClass("fast"), StorageClass("common", shared=True))
SLOW = Delays(*(timedelta(seconds=seconds) for seconds in (5, 3, 4, 2, 6)))


@dataclass
class HandClock:
    """A clock that stands still until it is moved."""

    now: datetime = field(default_factory=lambda: datetime(2026, 1, 1, tzinfo=UTC))

    def __call__(self) -> datetime:
        return self.now

    async def pass_time(self, time: timedelta) -> None:
        self.now += time


@dataclass(frozen=True)
class Outsider:
    """The world outside as the suite wants it."""

    world: World
    host: str

    async def power_off(self, uid: str) -> None:
        self.world.power_off(uid)

    async def destroy(self, uid: str) -> None:
        self.world.destroy(uid)

    async def plant(self, name: str) -> None:
        self.world.plant(self.host, name, Resources(1, 512, 1024))


@asynccontextmanager
async def bench(directory: Path, *, delays: Delays) -> AsyncIterator[Bench]:
    path, clock, opened = directory / "simulation.db", HandClock(), list[SimulationDriver]()
    (directory / "broken.db").write_bytes(b"this is no database" * 100)

    def connect(path: Path) -> SimulationDriver:
        host = SimulatedHost("sim-a", ROOM, delays=delays, storage_classes=CLASSES)
        opened.append(SimulationDriver(path, host, clock=clock))
        return opened[-1]

    with World(path, clock=clock) as world:
        yield Bench(
            host="sim-a",
            connect=partial(connect, path),
            connect_broken=partial(connect, directory / "broken.db"),
            disturb=Outsider(world, "sim-a"),
            pass_time=clock.pass_time,
            small=Resources(1, 512, 4096),
            large=Resources(4, 4096, 16384),
            too_big=Resources(64, 512, 4096),
            room=ROOM,
        )
        for driver in opened:
            await driver.close()


def _set_up(name: str, delays: Delays) -> DriverUnderTest:
    return DriverUnderTest(name, partial(bench, delays=delays), examples=60)


UNDER_TEST = (_set_up("simulation", Delays()), _set_up("simulation-slow", SLOW))
