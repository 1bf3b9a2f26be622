"""Moving machines: wherever one is sent it is once, as it was, and leaves nothing behind."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from conformance.pairs import PAIRS, Mover, Pair, PairUnderTest
from novacron.core.driver import Capability
from novacron.core.machine import Observed, Power
from novacron.core.migration import LiveMigration
from novacron.core.move import MovePolicy

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(
    params=[
        pytest.param(each, marks=[pytest.mark.full] if each.slow else [], id=each.name)
        for each in PAIRS
    ]
)
async def pair(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Pair]:
    """Two hosts with nothing on them."""
    under_test: PairUnderTest = request.param
    async with under_test.pair(tmp_path) as hosts:
        yield hosts


@pytest.fixture
def here(pair: Pair) -> Mover:
    """The host that the machine leaves."""
    return pair.connect("a")


@pytest.fixture
def there(pair: Pair) -> Mover:
    """The host that it goes to."""
    return pair.connect("b")


async def made(pair: Pair, driver: Mover, power: Power) -> Observed:
    """Make the machine on host a."""
    ref = pair.plan("a").ref
    await driver.create(pair.plan("a"))
    await pair.settled(driver, "a")
    await driver.set_power(ref, power)
    seen = await pair.settled(driver, "a")
    assert seen is not None
    return seen


async def sent(
    pair: Pair, here: Mover, there: Mover, policy: MovePolicy | None = None, *, move: str = "1"
) -> None:
    """Send it from a to b."""
    ref, luggage = pair.plan("a").ref, await here.pack(pair.plan("a").ref)
    destination = replace(await there.welcome(pair.plan("b"), luggage), move=move)
    await here.send(ref, destination, policy or MovePolicy())


async def cancelled(pair: Pair, here: Mover, there: Mover) -> Observed | None:
    """Send it so slowly that it can be called back; None where it has gone nevertheless."""
    await sent(pair, here, there, MovePolicy(compression=False, bandwidth_bytes=2**20))
    while await here.movement(pair.plan("a").ref) is not None:
        await here.cancel_move(pair.plan("a").ref)
        await pair.pass_time(timedelta(milliseconds=1))
    return await pair.settled(here, "a")


@pytest.mark.parametrize("power", list(Power))
async def test_a_machine_moves_as_it_is(
    pair: Pair, here: Mover, there: Mover, power: Power
) -> None:
    """On or off, with its size and its identity; and it is on one host only."""
    before = await made(pair, here, power)
    await sent(pair, here, there)
    assert await pair.settled(here, "a") is None
    await there.arrived(pair.plan("b"), None)
    after = await pair.settled(there, "b")
    assert after is not None
    assert (after.power, after.resources, after.vm_id) == (power, before.resources, before.vm_id)
    assert after.drifted is None
    await here.clear_out(pair.plan("a").ref, await there.pack(pair.plan("b").ref), was_home=True)
    assert await here.machines("a") == []
    assert [seen.uid for seen in await there.machines("b")] == [pair.uid]
    await there.delete(pair.plan("b").ref)
    assert pair.left_behind() == []


async def test_a_machine_that_is_sent_twice_is_sent_once(
    pair: Pair, here: Mover, there: Mover
) -> None:
    """Also where the second order comes from a process that knows nothing of the first."""
    await made(pair, here, Power.ON)
    await sent(pair, here, there)
    again = pair.connect("a")
    if not await again.movement(pair.plan("a").ref) and await again.observe(pair.plan("a").ref):
        await sent(pair, again, there)
    assert await pair.settled(here, "a") is None
    assert await pair.settled(there, "b") is not None


async def test_a_cancelled_machine_stays_and_nothing_is_left_elsewhere(
    pair: Pair, here: Mover, there: Mover
) -> None:
    """Unless it has gone already, which a fast host cannot help."""
    await made(pair, here, Power.ON)
    stays = await cancelled(pair, here, there)
    if stays is None:
        assert await pair.settled(there, "b") is not None
        return
    assert stays.power is Power.ON
    await there.clear_out(pair.plan("b").ref, await here.pack(pair.plan("a").ref), was_home=False)
    assert await there.machines("b") == []
    assert await pair.settled(here, "a") == stays


async def test_a_machine_that_was_called_back_goes_when_it_is_sent_anew(
    pair: Pair, here: Mover, there: Mover
) -> None:
    """How the last order ended is not what comes of this one."""
    await made(pair, here, Power.ON)
    if await cancelled(pair, here, there) is not None:
        kept = await here.pack(pair.plan("a").ref)
        await there.clear_out(pair.plan("b").ref, kept, was_home=False)
        await sent(pair, here, there, move="2")
        assert await pair.settled(here, "a") is None
    assert await pair.settled(there, "b") is not None


async def test_nothing_moves_that_was_not_sent(pair: Pair, here: Mover) -> None:
    """None is the only answer on which a machine is sent."""
    await made(pair, here, Power.ON)
    assert await here.movement(pair.plan("a").ref) is None
    await here.cancel_move(pair.plan("a").ref)
    seen = await pair.settled(here, "a")
    assert seen is not None
    assert seen.power is Power.ON


async def test_clearing_out_twice_is_clearing_out_once(
    pair: Pair, here: Mover, there: Mover
) -> None:
    """The answer to the first may have been lost; the machine elsewhere is not touched."""
    before = await made(pair, here, Power.ON)
    kept = await here.pack(pair.plan("a").ref)
    for _ in range(2):
        await there.clear_out(pair.plan("b").ref, kept, was_home=False)
    assert await pair.settled(here, "a") == before


async def test_the_capability_says_that_machines_move(here: Mover) -> None:
    """Whoever filters on it finds the calls behind it."""
    driver: object = here
    assert isinstance(driver, LiveMigration)
    assert Capability.LIVE_MIGRATION in here.capabilities
