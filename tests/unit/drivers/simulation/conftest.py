"""A simulation file, a clock that is moved by hand, and connections to hosts in that file."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from conformance.drivers.simulation import HandClock
from novacron.drivers.simulation import SimulatedHost, SimulationDriver
from unit.drivers.simulation.simulated import Connect


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the simulation lives; the directory is the driver's to make."""
    return tmp_path / "state" / "simulation.db"


@pytest.fixture
def clock() -> HandClock:
    """The time of the simulation."""
    return HandClock()


@pytest.fixture
async def connect(path: Path, clock: HandClock) -> AsyncIterator[Connect]:
    """Reach a host in the file; all connections are closed at the end."""
    opened: list[SimulationDriver] = []

    def connect(host: SimulatedHost) -> SimulationDriver:
        opened.append(SimulationDriver(path, host, clock=clock))
        return opened[-1]

    yield connect
    for driver in opened:
        await driver.close()
