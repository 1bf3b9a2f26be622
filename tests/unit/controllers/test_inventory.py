"""What a list of all machines of a host brings to light, and what it spares."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from novacron.app.registry import HOST_KIND
from novacron.controllers import inventory
from novacron.controllers.inventory import InventoryWatch
from novacron.controllers.ledger import Ledger, Owner
from novacron.core.driver import Driver, Inventory
from novacron.core.errors import Unreachable
from novacron.core.machine import Observed, Power, Usage
from novacron.runtime.resource import Key, Resource
from novacron.scheduler import Held
from unit.controllers.stage import World

THINGS = Resource("test", "v1", "things", "Thing")


class Enough(Exception):
    """One round was made."""


@dataclass
class Watched:
    """A world with somebody who lists its machines."""

    world: World
    woken: list[Owner] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        ledger = Ledger(HOST_KIND)
        self.owner = Owner(THINGS, Key("default", "vm"))
        ledger.owners[self.world.machine.uid] = self.owner
        self.ledger, self.ours = ledger, True
        self.watch = InventoryWatch(
            self,  # type: ignore[arg-type]
            ledger,
            self.woken.append,
            lambda _: self.ours,
            lambda: self.ours,
            timedelta(seconds=30),
            self.pause,
        )
        self.troubled: set[str] = set()
        self.misdeclared: dict[str, str] = {}
        self.names, self.rounds = ["a"], 1
        self.pauses: list[float] = []

    async def pause(self, seconds: float) -> None:
        """End the rounds that are under test, once all of the last has been done."""
        self.pauses.append(seconds)
        await asyncio.sleep(0.2)
        self.rounds -= 1
        if not self.rounds:
            raise Enough

    async def goes_round(self, rounds: int = 1) -> bool:
        """Go round all hosts; say whether any was asked."""
        self.asked.clear()
        self.rounds = rounds
        try:
            await self.watch.run()
        except* Enough:
            pass
        return bool(self.asked)

    def leave_unused(self, machines_on: object) -> None:
        """Keep every connection."""

    def trouble(self, host: str) -> str | None:
        return f"host {host} does not answer" if host in self.troubled else None

    def hosts(self) -> list[str]:
        return self.names

    def named(self, host: str) -> Driver | None:
        self.asked.append(host)
        return self.world.named(host)

    def unusable(self) -> dict[str, str]:
        return self.misdeclared

    def answered(self, host: str) -> bool:
        """Say whether it was silent before."""
        was_silent = host in self.troubled
        self.troubled.discard(host)
        return was_silent

    def failed(self, host: str, why: str) -> bool:
        """Take note that a host is in trouble."""
        del why
        news = host not in self.troubled
        self.troubled.add(host)
        return news

    async def listed(self) -> list[Owner]:
        """List all machines; return whose were woken."""
        self.woken.clear()
        await self.watch.look_at("a")
        return self.woken

    def just_listed(self) -> Observed | None:
        return self.watch.just_listed("a", self.world.machine.uid)


@pytest.fixture
async def watched(tmp_path: Path) -> Watched:
    """A machine that came to be between two lists."""
    found = Watched(World(tmp_path))
    await found.listed()
    await found.world.round()
    return found


async def test_a_machine_that_is_new_or_other_than_before_is_looked_at(watched: Watched) -> None:
    """And one that is as it was is not."""
    assert await watched.listed() == [watched.owner]
    assert await watched.listed() == []
    await watched.world.driver.set_power(watched.world.machine.ref, Power.OFF, force=True)
    assert await watched.listed() == [watched.owner]


async def test_a_machine_may_be_on_a_host_that_cannot_be_used(watched: Watched) -> None:
    """Made anew it would be there twice; where others had it, nobody asks that host."""
    uid = watched.world.machine.uid
    watched.misdeclared["b"] = "host b cannot be used: no driver is called of-tomorrow"
    with pytest.raises(Unreachable, match="of-tomorrow"):
        await watched.watch.locate(uid)
    assert await watched.watch.locate(uid, {"a"}) == "a"


async def test_what_a_round_left_is_no_news(watched: Watched) -> None:
    """Whoever did it knows; what somebody else did afterwards is news all the same."""
    done = await watched.world.round()
    assert done.seen is not None
    watched.watch.noted("a", done.seen)
    assert await watched.listed() == []
    await watched.world.driver.set_power(watched.world.machine.ref, Power.OFF, force=True)
    assert await watched.listed() == [watched.owner]


async def test_who_was_woken_by_a_list_needs_no_look_of_its_own_at_once(watched: Watched) -> None:
    """Once, and on that host."""
    await watched.listed()
    assert watched.watch.just_listed("b", watched.world.machine.uid) is None
    await watched.world.driver.set_power(watched.world.machine.ref, Power.OFF, force=True)
    await watched.listed()
    listed = watched.just_listed()
    assert listed == await watched.world.driver.observe(watched.world.machine.ref)
    assert watched.just_listed() is None


async def test_news_and_time_make_a_list_worthless(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the host is asked."""
    await watched.listed()
    watched.watch.heard(watched.world.machine.uid)
    assert watched.just_listed() is None
    await watched.world.driver.set_power(watched.world.machine.ref, Power.OFF, force=True)
    await watched.listed()
    monkeypatch.setattr(inventory, "JUST_NOW", timedelta(0))
    assert watched.just_listed() is None


@pytest.mark.parametrize("source", ["the host", "a round"])
async def test_a_list_tells_nothing_of_whom_there_were_news_meanwhile(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    """What it says of them may be older than the news; it is still noticed that they changed."""
    watch, uid = watched.watch, watched.world.machine.uid

    @dataclass
    class Slow:
        driver: Inventory

        async def machines(self, host: str) -> Sequence[Observed]:
            found = await self.driver.machines(host)
            if source == "the host":
                watch.heard(uid)
            else:
                watch.noted(host, replace(found[0], power=Power.OFF))
            return found

    watched.ledger.assume(watched.world.machine.uid, Held("a", watched.world.machine.wanted))
    monkeypatch.setattr(watched, "named", lambda _: Slow(watched.world.driver))
    assert watched.owner in await watched.listed()
    assert watched.just_listed() is None


async def test_a_host_is_asked_only_by_who_has_machines_on_it(watched: Watched) -> None:
    """Each host is asked once in an interval, however many processes stand by."""
    assert not await watched.goes_round(), "nobody is there"
    watched.ledger.assume(watched.world.machine.uid, Held("a", watched.world.machine.wanted))
    assert await watched.goes_round()
    watched.ours = False
    assert not await watched.goes_round(), "they are another's"


async def test_a_host_that_fell_silent_is_asked_until_it_answers(watched: Watched) -> None:
    """Whoever has machines there later must not wait for that."""
    watched.ours, watched.troubled = False, {"a"}
    assert await watched.goes_round()


async def test_a_silent_host_has_no_other_asked_more_often(watched: Watched) -> None:
    """Each is asked once in an interval; the silent one at every occasion."""
    watched.names, watched.troubled = ["a", "b"], {"b"}
    watched.ledger.assume(watched.world.machine.uid, Held("a", watched.world.machine.wanted))
    await watched.goes_round(3)
    assert sorted(watched.asked) == ["a", "b", "b", "b"]
    watched.watch.interval = timedelta(0)
    await watched.goes_round(1)
    assert sorted(watched.asked) == ["b"], "its interval has not passed yet"
    watched.watch._due.clear()
    await watched.goes_round(2)
    assert sorted(watched.asked) == ["a", "a", "b", "b"]


async def test_a_host_is_asked_when_it_is_due_and_not_an_interval_after_the_last_round(
    watched: Watched,
) -> None:
    """A silent host has rounds made in between, and when it answers again they come more seldom."""
    watched.ledger.assume(watched.world.machine.uid, Held("a", watched.world.machine.wanted))
    watched.watch._due["a"] = asyncio.get_running_loop().time() + 10
    assert not await watched.goes_round()
    assert watched.pauses == [pytest.approx(10, abs=1)]


async def test_all_machines_of_a_host_are_looked_at_that_is_declared_otherwise(
    watched: Watched,
) -> None:
    """What they were refused there they may get now, and one that is off tells of nothing new."""
    watched.ledger.assume(watched.world.machine.uid, Held("a", watched.world.machine.wanted))
    await watched.listed()
    assert await watched.listed() == []
    watched.world.driver = World(watched.world.directory).driver
    assert await watched.listed() == [watched.owner]
    assert await watched.listed() == []


async def test_a_host_that_is_back_wakes_those_who_left_something_there(watched: Watched) -> None:
    """It is removed then and not half a minute later, for it may be in the way of others."""
    await watched.listed()
    watched.ledger.assume(
        watched.world.machine.uid, Held("elsewhere", watched.world.machine.wanted)
    )
    watched.troubled.add("a")
    assert await watched.listed() == [watched.owner]
    assert await watched.listed() == []


async def used_on(watched: Watched, *hosts: str) -> list[str]:
    """Have a machine be seen on hosts; return on which of them it is said to use something."""
    seen = await watched.world.driver.observe(watched.world.machine.ref)
    assert seen is not None
    for host in hosts:
        watched.watch.noted(host, replace(seen, usage=Usage(0.5, 100)))
    return [host for _, host, _ in watched.watch.usages()]


async def test_nobody_knows_what_machines_of_a_silent_host_use(watched: Watched) -> None:
    """It may be dead, and what was seen last would be told for ever."""
    watched.ledger.assume(watched.world.machine.uid, Held("a", watched.world.machine.wanted))
    assert await used_on(watched, "a") == ["a"]
    watched.troubled = {"a"}
    assert await used_on(watched, "a") == []


async def test_a_machine_uses_something_only_where_it_is(watched: Watched) -> None:
    """Sums would count one twice that left something where it was before."""
    watched.ledger.assume(watched.world.machine.uid, Held("b", watched.world.machine.wanted))
    assert await used_on(watched, "a", "b") == ["b"]


async def test_a_look_that_fails_in_an_unknown_way_ends_nothing_but_itself(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Else one machine of one host ends the operator, and the one that is started after it."""

    class Odd:
        async def machines(self, host: str) -> Sequence[Observed]:
            raise ValueError(f"nobody thought of this on host {host}")

    watched.ledger.assume(watched.world.machine.uid, Held("a", watched.world.machine.wanted))
    watched.woken.clear()
    with monkeypatch.context() as patch:
        patch.setattr(Watched, "named", lambda *_: Odd())
        await watched.goes_round()
        assert watched.troubled == {"a"}
        assert watched.woken == [watched.owner]
        assert not await watched.watch.look_at("a")
    assert "nobody thought of this on host a" in caplog.text
    assert await watched.watch.look_at("a")
    assert not watched.troubled
