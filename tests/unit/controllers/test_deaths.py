"""A guest that dies on its host again and again."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from novacron.core.driver import Accepted
from novacron.core.errors import Unreachable
from novacron.core.machine import MachineRef, Observed, Power
from novacron.drivers.simulation import SimulationDriver
from unit.controllers.stage import Diary

A_SECOND = timedelta(seconds=1)


class Mortal(SimulationDriver):
    """A host whose guest dies when a test says so, and whose answers may be lost."""

    dead = False
    answers = True

    async def observe(self, ref: MachineRef) -> Observed | None:
        """Return what is there, dead or alive."""
        seen = await super().observe(ref)
        return replace(seen, power=Power.OFF, ended="it crashed") if seen and self.dead else seen

    async def set_power(self, ref: MachineRef, want: Power, *, force: bool = False) -> Accepted:
        """Start the guest, whether or not whoever asked hears of it."""
        done = await super().set_power(ref, want, force=force)
        self.dead = False
        if not self.answers:
            raise Unreachable("connection lost")
        return done


@pytest.fixture
def host(tmp_path: Path) -> Diary:
    """A machine that runs."""
    world = Diary(tmp_path)
    world.driver = Mortal(tmp_path / "world.db", world.host, clock=lambda: world.now)
    return world


async def seconds_until_up(host: Diary) -> int:
    """Have the guest die; return how long it takes until it runs again."""
    assert isinstance(host.driver, Mortal)
    host.driver.dead = True
    for seconds in range(60):
        try:
            done = await host.round()
        except Unreachable:
            done = None
        if not host.driver.dead:
            host.driver.answers = True
            await host.settle()
            return seconds
        assert done is None or not done.settled
        host.now += A_SECOND
    raise AssertionError("it stays dead")


@pytest.mark.parametrize("lost", [None, 0, 1], ids=["all heard", "first lost", "second lost"])
async def test_each_start_counts_also_one_of_which_no_answer_came(
    host: Diary, lost: int | None
) -> None:
    """Else the next death would find its pause over already."""
    await host.settle()
    pauses = []
    for number in range(3):
        host.driver.answers = number != lost
        pauses.append(await seconds_until_up(host))
        host.now += 20 * A_SECOND
        await host.settle()
    assert pauses == [1, 2, 4]
