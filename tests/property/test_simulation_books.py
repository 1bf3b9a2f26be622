"""Whatever happens to simulated machines, and whoever does it, the file's books are right."""

import tempfile
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance.drivers.simulation import SLOW, HandClock
from novacron.core.errors import DriverError
from novacron.core.machine import MachinePlan, MachineRef, Nic, Power, Resources
from novacron.drivers.simulation import SimulatedHost, SimulationDriver, World
from unit.drivers.simulation.books import check_books

ROOM = Resources(8, 800, 8000)
SIZES = st.builds(Resources, st.integers(1, 6), st.integers(1, 600), st.sampled_from([0, 1000]))
NICS = st.lists(st.sampled_from([Nic("lan"), Nic("dmz", address="192.168.1.9")]), max_size=3).map(
    tuple
)
PLANS = st.builds(
    lambda uid, size, nics: MachinePlan(MachineRef(uid, "default", uid, "a"), size, "tiny", nics),
    st.sampled_from(["uid-1", "uid-2"]),
    SIZES,
    NICS,
)
# What makes and changes machines comes more often than what ends them.
ORDERS = (
    "create",
    "create",
    "resize",
    "resize",
    "resize",
    "start",
    "stop",
    "delete",
    "push",
    "pull",
    "stretch",
    "destroy",
)
HISTORIES = st.lists(
    st.tuples(st.sampled_from(ORDERS), PLANS, st.sampled_from([0, 3, 8])), min_size=1, max_size=30
)


async def _order(driver: SimulationDriver, world: World, order: str, plan: MachinePlan) -> None:
    match order:
        case "create":
            await driver.create(plan)
        case "resize":
            await driver.resize(plan)
        case "start":
            await driver.set_power(plan.ref, Power.ON)
        case "stop":
            await driver.set_power(plan.ref, Power.OFF, force=plan.resources.vcpus > 3)
        case "delete":
            await driver.delete(plan.ref)
        case _:
            _disturb(world, order, plan)


def _disturb(world: World, order: str, plan: MachinePlan) -> None:
    match order:
        case "push":
            world.power_on(plan.ref.uid)
        case "pull":
            world.power_off(plan.ref.uid)
        case "stretch":
            world.resize(plan.ref.uid, plan.resources)
        case "destroy":
            world.destroy(plan.ref.uid)


async def _live(path: Path, history: list[tuple[str, MachinePlan, int]]) -> None:
    clock = HandClock()
    driver = SimulationDriver(path, SimulatedHost("a", ROOM, delays=SLOW), clock=clock)
    with World(path, clock=clock) as world:
        for order, plan, seconds in history:
            with suppress(DriverError, LookupError):
                await _order(driver, world, order, plan)
            await clock.pass_time(timedelta(seconds=seconds))
            await driver.machines("a")
            check_books(path)
        for machine in world.machines():
            world.destroy(machine.uid or "")
        await driver.create(MachinePlan(MachineRef("last", "default", "last", "a"), ROOM, "tiny"))
    await driver.close()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(history=HISTORIES)
async def test_the_books_are_right_after_any_history(
    history: list[tuple[str, MachinePlan, int]],
) -> None:
    """And when all machines are gone, the whole host is free again."""
    with tempfile.TemporaryDirectory() as directory:
        await _live(Path(directory) / "sim.db", history)
