"""A process that uses a simulation file: what it does is named by its first argument."""

import asyncio
import sys
from itertools import count
from pathlib import Path

from novacron.core.errors import DriverError, OutOfCapacity
from novacron.core.machine import MachinePlan, MachineRef, Power, Resources
from novacron.drivers.simulation import SimulatedHost, SimulationDriver

ROOM = Resources(200, 1_000_000, 1_000_000)


def _plan(uid: str, vcpus: int = 1) -> MachinePlan:
    return MachinePlan(MachineRef(uid, "default", uid, "a"), Resources(vcpus, 64, 64), "tiny")


async def same(driver: SimulationDriver, _: str) -> None:
    """Make the machines that every other process also makes."""
    for number in range(150):
        plan = _plan(f"uid-{number}")
        await driver.create(plan)
        await driver.set_power(plan.ref, Power.ON)


async def fill(driver: SimulationDriver, me: str) -> None:
    """Make machines until the host is full."""
    try:
        for number in count():
            await driver.create(_plan(f"{me}-{number}"))
    except OutOfCapacity:
        return


async def churn(driver: SimulationDriver, me: str) -> None:
    """Make, change and remove machines until killed."""
    for number in count():
        plan = _plan(f"{me}-{number % 7}", vcpus=1 + number % 3)
        await driver.create(plan)
        try:
            await driver.resize(plan)
        except DriverError as error:
            print(error, file=sys.stderr)
        await driver.set_power(plan.ref, Power.ON)
        if number % 2:
            await driver.delete(plan.ref)


async def main(what: str, path: str, me: str) -> None:
    driver = SimulationDriver(Path(path), SimulatedHost("a", ROOM))
    print("ready", flush=True)
    sys.stdin.readline()
    await {"same": same, "fill": fill, "churn": churn}[what](driver, me)
    await driver.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
