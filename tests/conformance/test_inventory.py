"""The inventory: one call tells what asking one by one would tell, and what others did."""

import pytest

from conformance.under_test import Bench, FullDriver
from novacron.core.driver import Capability, Inventory
from novacron.core.errors import DriverError
from novacron.core.machine import Power


async def test_an_empty_host_has_no_machines(bench: Bench, driver: FullDriver) -> None:
    """An empty list is an answer, not a failure to get one."""
    assert await driver.machines(bench.host) == []


async def test_the_inventory_equals_what_is_observed(bench: Bench, driver: FullDriver) -> None:
    """Drift is found by comparing one with the other."""
    plans = [bench.plan(f"uid-{number}", name=f"web-{number}") for number in range(3)]
    for plan in plans:
        await bench.created(driver, plan)
    await bench.after(driver.set_power(plans[1].ref, Power.ON), driver, plans[1].ref)
    await driver.set_power(plans[2].ref, Power.ON)
    told = {seen.uid: seen for seen in await driver.machines(bench.host)}
    assert told == {plan.ref.uid: await driver.observe(plan.ref) for plan in plans}


async def test_what_others_did_is_seen(bench: Bench, driver: FullDriver) -> None:
    """Whoever stops or removes a machine at the host's own console does not tell us."""
    plan, other = bench.plan(), bench.plan("uid-2", name="db")
    for each in (plan, other):
        await bench.created(driver, each)
        await bench.after(driver.set_power(each.ref, Power.ON), driver, each.ref)
    await bench.disturb.power_off("uid-1")
    await bench.disturb.destroy("uid-2")
    seen = await bench.settled(driver, plan.ref)
    assert seen is not None
    assert (seen.power is Power.ON) is bench.restarts_guests
    assert await driver.machines(bench.host) == [seen]


async def test_an_unknown_host_is_not_an_empty_one(bench: Bench, driver: FullDriver) -> None:
    """An empty answer would make every machine recorded there look lost."""
    with pytest.raises(DriverError):
        await driver.machines("no-such-host")


async def test_the_host_is_told_of(bench: Bench, driver: FullDriver) -> None:
    """A host is ready when its driver says what it has."""
    facts = {facts.name: facts async for facts in driver.hosts()}
    assert facts[bench.host].capacity.vcpus > 0
    assert facts[bench.host].capacity.memory_mib > 0


async def test_capabilities_say_what_the_driver_satisfies(driver: FullDriver) -> None:
    """The scheduler and the controllers trust the list."""
    assert Capability.INVENTORY in driver.capabilities
    assert isinstance(driver, Inventory)


async def test_every_failure_is_one_of_the_core_s(bench: Bench) -> None:
    """Whoever calls a driver knows its remedy without knowing which library failed."""
    broken, plan = bench.connect_broken(), bench.plan()
    for call in (
        broken.observe(plan.ref),
        broken.create(plan),
        broken.resize(plan),
        broken.set_power(plan.ref, Power.ON),
        broken.delete(plan.ref),
        broken.machines(bench.host),
    ):
        with pytest.raises(DriverError, match=r"\w+ \w+"):
            await call
    with pytest.raises(DriverError):
        [facts async for facts in broken.hosts()]
    await broken.close()


async def test_a_closed_connection_can_be_closed_again(driver: FullDriver) -> None:
    """Shutting down takes more than one path."""
    await driver.close()
    await driver.close()
