"""Decisions whose writes got no answer: what they take is nobody else's until that is known."""

import asyncio
from datetime import timedelta

import pytest

from machines import virtual_machine
from novacron.runtime.errors import Conflict, Unreachable
from novacron.runtime.resource import Key
from unit.controllers.faltering import FalteringPaper
from unit.controllers.office import Office

Task = asyncio.Task[timedelta | None]


class Two:
    """Two machines of which one host takes only one, and a server that is slow to answer."""

    def __init__(self) -> None:
        self.server = FalteringPaper()
        self.office = Office(self.server)
        self.office.add_host("a")
        for name in ("first", "second"):
            body = virtual_machine(name, "n", cpu=5)
            body["metadata"] |= {"uid": name, "finalizers": [], "annotations": {}}
            self.office.machines.seen(self.server.write({**body, "status": {}}))

    async def look(self, name: str) -> Task:
        """Have the placer look at a machine, up to its next question."""
        task = asyncio.create_task(self.office.placer.reconcile(Key("n", name)))
        await asyncio.sleep(0)
        return task

    async def answer(self, fate: str) -> None:
        """Decide what becomes of the oldest question."""
        self.server.answer(fate, 0)
        for _ in range(3):
            await asyncio.sleep(0)

    def placed(self) -> list[str]:
        """Return who was promised room, by what is written."""
        written = self.server.objects.values()
        return [obj["metadata"]["name"] for obj in written if self.office.kind.holding(obj)]


@pytest.fixture
async def two() -> Two:
    """A decision about the first machine whose write got no answer, and has not come yet."""
    found = Two()
    deciding = await found.look("first")
    await found.answer("late")
    with pytest.raises(Unreachable):
        await deciding
    return found


async def test_what_comes_late_between_a_question_and_the_next_write_keeps_its_room(
    two: Two,
) -> None:
    """The next write fails by that very arrival, which is no reason to think that nothing came."""
    deciding = await two.look("first")
    await two.answer("done")  # nothing has come yet
    two.server.late.pop()()
    await two.answer("done")
    with pytest.raises(Conflict):
        await deciding
    second = await two.look("second")
    await two.answer("done")
    await second
    assert two.placed() == ["first"]


async def test_what_got_no_answer_is_made_again_as_it_was(two: Two) -> None:
    """Nothing else was written, so there is nothing to decide anew."""
    deciding = await two.look("first")
    await two.answer("done")
    await two.answer("done")
    await deciding
    assert two.placed() == ["first"]
    with pytest.raises(Conflict):
        two.server.late.pop()()
    again = await two.look("first")
    assert again.done()
    assert not two.server.asked


async def test_what_can_come_no_more_is_decided_anew(two: Two) -> None:
    """Somebody wrote the object meanwhile, so what was sent before that is refused."""
    obj = two.server.objects[Key("n", "first")]
    larger = virtual_machine("first", "n", cpu=9)
    two.server.write({**obj, "spec": larger["spec"]})
    deciding = await two.look("first")
    await two.answer("done")
    await two.answer("done")
    await deciding
    assert two.placed() == []
    second = await two.look("second")
    await two.answer("done")
    await second
    assert two.placed() == ["second"]


async def test_of_what_got_no_answer_nothing_is_kept_when_the_machine_is_gone(two: Two) -> None:
    """Nobody asks for it again."""
    assert two.office.placer._promises._unanswered
    obj = two.server.objects.pop(Key("n", "first"))
    two.office.machines.gone(two.server.numbered(obj))
    assert (await two.look("first")).done()
    assert not two.office.placer._promises._unanswered
