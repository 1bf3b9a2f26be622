"""What a machine holds while a decision about it is on its way, and what of that is left after."""

import asyncio
from datetime import timedelta
from typing import Any, cast

import pytest

from machines import virtual_machine
from novacron.core.machine import Observed, Power, Resources
from novacron.core.report import MachineReport
from novacron.runtime.errors import Conflict
from novacron.runtime.resource import Key, Object
from unit.controllers.faltering import FalteringPaper
from unit.controllers.office import Office

Task = asyncio.Task[timedelta | None]


class Host:
    """A host of eight CPUs, the machines that are written down, and a server slow to answer."""

    def __init__(self) -> None:
        self.server = FalteringPaper()
        self.office = Office(self.server)
        self.office.add_host("a")

    @property
    def free(self) -> int:
        """How many CPUs may be promised."""
        table = self.office.ledger.table
        return int(table.free[0, cast("int", table.row("a"))])

    def tell(self) -> None:
        """Have all news heard."""
        cache = self.office.machines
        for news in self.server.news.values():
            while news:
                now = news.popleft()
                (cache.gone if "gone" in now else cache.seen)(now)

    def ask(self, name: str, cpu: int, **metadata: Any) -> None:
        """Have a machine asked for, or another size of it."""
        body = virtual_machine(name, "n", cpu=cpu)
        old: Object = self.server.objects.get(Key("n", name)) or {"status": {}}
        new = {"uid": name, "finalizers": [], "annotations": {}} | body["metadata"]
        self.server.write({**old, **body, "metadata": old.get("metadata", new) | metadata})
        self.tell()

    async def decide(self, name: str) -> Task:
        """Have the placer look at a machine, up to its next question."""
        task = asyncio.create_task(self.office.placer.reconcile(Key("n", name)))
        await asyncio.sleep(0)
        return task

    async def answer(self, fate: str = "done") -> None:
        """Decide what becomes of the oldest question."""
        self.server.answer(fate, 0)
        for _ in range(3):
            await asyncio.sleep(0)

    async def decided(self, name: str) -> None:
        """Have the placer decide about a machine, and all hear of it."""
        task = await self.decide(name)
        await self.answer()
        await task
        self.tell()

    def carried_out(self, name: str, size: Resources) -> None:
        """Have it written down that a machine runs with this size."""
        kind, obj = self.office.kind, self.server.objects[Key("n", name)]
        machine = kind.machine(obj)
        seen = Observed(machine.uid, machine.name, Power.ON, size)
        report = MachineReport(None, machine.host, machine.reserved, frozenset(), seen, ())
        status = kind.status(obj, machine, report)
        kept = {name: value for name, value in status.items() if value is not None}
        self.server.write({**obj, "status": kept})
        self.tell()


@pytest.fixture
async def host() -> Host:
    """One machine that has all eight CPUs."""
    found = Host()
    found.ask("m", 8)
    await found.decided("m")
    found.carried_out("m", Resources(8, 512, 1024))
    assert found.free == 0
    return found


async def test_who_is_asked_to_shrink_again_holds_what_it_still_has(host: Host) -> None:
    """It has all of it until it is started anew, however often its owner changes their mind."""
    host.ask("m", 5)
    await host.decided("m")
    host.carried_out("m", Resources(8, 512, 1024))
    assert host.free == 0
    host.ask("m", 3)
    deciding = await host.decide("m")
    assert host.free == 0
    await host.answer("conflict")
    with pytest.raises(Conflict):
        await deciding
    assert host.free == 0


async def test_what_comes_before_the_answer_counts_once_that_is_there(host: Host) -> None:
    """Nobody tells of it again."""
    host.ask("m", 5)
    deciding = await host.decide("m")
    host.server.answer("done", 0)
    host.carried_out("m", Resources(5, 512, 1024))
    await deciding
    assert host.free == 3


async def test_what_fails_since_its_machine_is_gone_takes_nothing(host: Host) -> None:
    """Its room would be lost until the next leader, and its host could not be let go."""
    host.ask("m", 5)
    deciding = await host.decide("m")
    host.ask("m", 5, deletionTimestamp="2026-11-15T11:00:00Z", finalizers=[])
    assert host.free == 8
    await host.answer("conflict")
    with pytest.raises(Conflict):
        await deciding
    assert host.free == 8
    assert not host.office.ledger.occupancy("a")
