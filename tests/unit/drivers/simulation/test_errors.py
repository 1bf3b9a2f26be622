"""Whatever happens to the file, the operator hears one of the core's failures."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from novacron.core.errors import Busy, Unreachable
from novacron.drivers.simulation import SimulatedHost, World
from unit.drivers.simulation.simulated import ROOM, Connect, plan

HOST = SimulatedHost("a", ROOM)


async def test_a_locked_file_is_busy_and_works_when_it_is_free(
    connect: Connect, path: Path
) -> None:
    """A process stopped in the middle of a transaction must not fail everybody else for good."""
    driver = connect(HOST)
    await driver.create(plan())
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Busy, match=r"another process keeps the simulation file .* locked"):
            await driver.delete(plan().ref)
        assert await driver.observe(plan().ref) is not None
    await driver.delete(plan().ref)


async def test_a_file_that_cannot_be_made_is_out_of_reach_until_it_can(
    connect: Connect, path: Path
) -> None:
    """The driver keeps no broken connection: mending the place is enough."""
    path.parent.write_text("in the way")
    driver = connect(HOST)
    with pytest.raises(Unreachable, match=r"simulation\.db cannot be used"):
        await driver.observe(plan().ref)
    path.parent.unlink()
    assert await driver.observe(plan().ref) is None


async def test_a_file_of_another_version_is_left_alone(connect: Connect, path: Path) -> None:
    """Better no simulation than one whose rows mean something else."""
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA user_version = 99")
    with pytest.raises(Unreachable, match="written by another version of NovaCron"):
        await connect(HOST).create(plan())
    with pytest.raises(Unreachable, match="written by another version of NovaCron"):
        World(path)


async def test_a_connection_is_not_carried_into_another_thread(connect: Connect) -> None:
    """Each thread gets a connection of its own, so drivers can be made anywhere."""
    await connect(HOST).create(plan())

    async def elsewhere() -> bool:
        driver = connect(HOST)
        found = await driver.observe(plan().ref)
        await driver.close()
        return found is not None

    assert await asyncio.to_thread(lambda: asyncio.run(elsewhere()))
