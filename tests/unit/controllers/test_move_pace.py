"""How often somebody looks at a move that is under way: whoever waits for it wants to see it."""

from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from novacron.controllers.round import Round
from novacron.drivers.simulation import Delays
from unit.controllers.pair import Hosts

MOST = timedelta(seconds=2)


async def looks(directory: Path, takes: timedelta, *, live: bool = True) -> list[Round]:
    """Return the first rounds of a move, each of which comes when the one before asked for it."""
    hosts = Hosts(directory, Delays(move=takes, stop=takes))
    await hosts.settle()
    hosts.order(live=live)
    await hosts.round()  # it is written down that it begins
    rounds = []
    for _ in range(7):
        rounds.append(done := await hosts.round())
        assert hosts.machine.move is not None, "it is still under way"
        hosts.now += done.look_again or timedelta(0)
    return rounds


def pauses(rounds: list[Round]) -> list[timedelta]:
    """Return after how long each round wants the next one."""
    return [each.look_again or timedelta(0) for each in rounds]


@pytest.mark.parametrize("takes", [timedelta(seconds=10), timedelta(hours=1)])
async def test_a_move_is_looked_at_every_second_or_two(tmp_path: Path, takes: timedelta) -> None:
    """From its beginning on, and however long it takes; but not without a pause."""
    found = pauses(await looks(tmp_path, takes))
    assert min(found) > timedelta(0)
    assert max(found) <= MOST


async def test_every_look_at_a_move_tells_how_far_it_is_by_then(tmp_path: Path) -> None:
    """A tenth more for each second of ten."""
    _, *rounds = await looks(tmp_path, timedelta(seconds=10))
    told = [each.move.progress.percent for each in rounds if each.move]
    assert len(told) == len(rounds)
    steps = [after - before for before, after in pairwise(told)]
    assert all(0 < step <= 20 for step in steps), told


async def test_a_machine_that_is_stopped_for_its_move_is_looked_at_as_often(tmp_path: Path) -> None:
    """It is away until it has come, so its owner waits all the more."""
    rounds = await looks(tmp_path, timedelta(minutes=1), live=False)
    assert all("is stopped first" in each.outcomes["Moved"].message for each in rounds)
    assert min(pauses(rounds)) > timedelta(0)
    assert max(pauses(rounds)) <= MOST
