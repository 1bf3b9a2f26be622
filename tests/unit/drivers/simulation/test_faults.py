"""Faults strike the calls they name, at their rate, and change nothing."""

from pathlib import Path
from random import Random

import pytest

from novacron.core.errors import Busy, DriverError, Rejected, Unreachable
from novacron.core.machine import Power
from novacron.drivers.simulation import Fault, Operation, SimulatedHost, SimulationDriver
from unit.drivers.simulation.simulated import ROOM, Connect, plan


def _host(*faults: Fault) -> SimulatedHost:
    return SimulatedHost("a", ROOM, faults=faults)


async def test_a_fault_fails_its_operation_and_no_other(connect: Connect) -> None:
    """A test wants one thing to go wrong."""
    driver = connect(_host(Fault(Operation.START, "Rejected", message="no such firmware")))
    await driver.create(plan())
    with pytest.raises(Rejected, match="no such firmware"):
        await driver.set_power(plan().ref, Power.ON)
    await driver.set_power(plan().ref, Power.OFF)
    await driver.delete(plan().ref)


async def test_a_struck_call_has_done_nothing(connect: Connect) -> None:
    """The failure came from before the deed, not after it."""
    with pytest.raises(Unreachable, match="a simulated fault struck create"):
        await connect(_host(Fault(Operation.CREATE, "Unreachable"))).create(plan())
    assert await connect(_host()).observe(plan().ref) is None


async def test_a_fault_can_be_for_some_machines_only(connect: Connect) -> None:
    """One bad machine among good ones is what happens in life."""
    driver = connect(_host(Fault(Operation.CREATE, "Busy", machine="db-*")))
    await driver.create(plan("uid-1", name="web-1"))
    with pytest.raises(Busy):
        await driver.create(plan("uid-2", name="db-1"))


async def test_a_whole_host_can_be_out_of_reach(connect: Connect) -> None:
    """Host conditions and drift repair have failures of their own."""
    driver = connect(
        _host(Fault(Operation.MACHINES, "Unreachable"), Fault(Operation.HOSTS, "Unreachable"))
    )
    with pytest.raises(Unreachable, match="struck machines"):
        await driver.machines("a")
    with pytest.raises(Unreachable, match="struck hosts"):
        [facts async for facts in driver.hosts()]


async def test_a_fault_strikes_at_its_rate_and_a_seed_repeats_it(path: Path) -> None:
    """A failure found by chance must be found again on purpose."""

    async def struck(seed: int) -> list[bool]:
        host = _host(Fault(Operation.OBSERVE, "Unreachable", rate=0.25))
        driver = SimulationDriver(path, host, random=Random(seed).random)
        outcomes = [await _fails(driver) for _ in range(400)]
        await driver.close()
        return outcomes

    first = await struck(7)
    assert 60 <= sum(first) <= 140
    assert await struck(7) == first


async def _fails(driver: SimulationDriver) -> bool:
    try:
        await driver.observe(plan().ref)
    except DriverError:
        return True
    return False


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ({"error": "Nonsense"}, "no failure is called Nonsense; known: Busy, OutOfCapacity"),
        ({"error": "Busy", "rate": 1.5}, "a fault's rate lies between 0 and 1, not at 1.5"),
    ],
)
def test_a_fault_that_cannot_be_is_refused(fault: dict[str, object], sentence: str) -> None:
    """A misspelt fault would be a test that passes for the wrong reason."""
    with pytest.raises(ValueError, match=sentence):
        Fault(Operation.CREATE, **fault)  # type: ignore[arg-type]
