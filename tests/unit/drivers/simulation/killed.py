"""A process that is killed before and after each statement it gives to SQLite.

Forks a child per statement, which kills itself there; then plays the same story to its end.
Prints how many children were killed.
"""

import asyncio
import os
import shutil
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

from novacron.core.machine import MachinePlan, MachineRef, Power, Resources
from novacron.drivers.simulation import SimulatedHost, SimulationDriver, World
from unit.drivers.simulation.books import check_books

HOST = SimulatedHost("a", Resources(8, 8192, 8192))


class Killing(sqlite3.Connection):
    """Counts statements and kills its process when the count is reached."""

    left = -1

    def execute(self, *args: Any) -> sqlite3.Cursor:
        self._tick()
        cursor = super().execute(*args)
        self._tick()
        return cursor

    def executescript(self, *args: Any) -> sqlite3.Cursor:
        self._tick()
        cursor = super().executescript(*args)
        self._tick()
        return cursor

    def _tick(self) -> None:
        Killing.left -= 1
        if Killing.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


async def story(path: Path) -> None:
    """All that can happen to machines; every order may have been carried out before."""
    driver = SimulationDriver(path, HOST)
    one, two = _plan("uid-1"), _plan("uid-2")
    await driver.create(one)
    await driver.set_power(one.ref, Power.ON)
    await driver.create(two)
    await driver.resize(_plan("uid-2", vcpus=3))
    await driver.set_power(two.ref, Power.ON)
    await driver.delete(one.ref)
    await driver.close()


def _plan(uid: str, vcpus: int = 1) -> MachinePlan:
    return MachinePlan(MachineRef(uid, "default", uid, "a"), Resources(vcpus, 64, 64), "tiny")


def killed_at(statement: int, path: Path) -> bool:
    """Play the story in a child that dies at this statement, if there are that many."""
    child = os.fork()
    if child == 0:
        Killing.left = statement
        asyncio.run(story(path))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def end_of(path: Path) -> list[object]:
    """Play the story to its end and return what is there."""
    asyncio.run(story(path))
    check_books(path)
    with World(path) as world:
        return [(m.uid, m.power, m.resources, m.addresses, m.changing) for m in world.machines()]


def main(directory: Path) -> None:
    connect = sqlite3.connect
    sqlite3.connect = lambda *args, **kwargs: connect(*args, factory=Killing, **kwargs)  # type: ignore[assignment]
    undisturbed = end_of(directory / "undisturbed" / "sim.db")
    kills = 0
    while killed_at(kills + 1, directory / "killed" / "sim.db"):
        kills += 1
        assert end_of(directory / "killed" / "sim.db") == undisturbed, f"statement {kills}"
        shutil.rmtree(directory / "killed")
    print(kills)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
