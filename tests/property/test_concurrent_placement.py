"""No host is promised twice, whatever becomes of the writes by which promises are kept.

Neither its CPUs nor its memory, its disks, its storage classes or its devices. The real placer and
mover decide about many machines at once over a real cache and ledger. Of the API server there is
only paper: each request lies there until it is answered, lost or made late, and what the cache is
told of comes later still.
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from datetime import timedelta
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

import scarce
from machines import virtual_machine
from novacron.core.conditions import Condition
from novacron.core.machine import Machine, Observed, Power, Resources
from novacron.core.move import MoveReport, MoveResult
from novacron.core.placement import placement_of
from novacron.core.report import MachineReport
from novacron.core.volume import Attachment, SeenVolume
from novacron.families.move_record import MIGRATE_TO, STOP_ALLOWED
from novacron.runtime.errors import ApiError, Conflict, NotFound
from novacron.runtime.resource import Key
from scarce import GROWS_ONLY, HOSTS, THINGS
from unit.controllers.faltering import FalteringPaper
from unit.controllers.office import NOON, Office

NAMES = st.sampled_from("abcde")
SEVERAL = st.lists(NAMES, min_size=1, unique=True)
# What is asked for beyond a little: one thing, or all at once, so that none hides behind another.
SCARCE = st.sampled_from([*((thing,) for thing in THINGS), THINGS])
# Two of them fill a host or miss it by little, so that a single double promise is one too many.
SIZES = st.sampled_from([2, 3, 5, 8])
FATES = st.sampled_from(["done", "done", "conflict", "answer lost", "lost", "late"])


class Rush(RuleBasedStateMachine):
    """Owners who change their minds, a placer and a mover with many hands, a server that fails."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.server = FalteringPaper()
        self.office = Office(self.server)
        self.kind, self.made = self.office.kind, 0
        scarce.add_hosts(self.office)
        self.things: tuple[str, ...] = ()
        self.counts: dict[str, dict[str, int]] = {}
        self.tasks: dict[tuple[str, str], asyncio.Task[timedelta | None]] = {}

    @initialize(things=SCARCE)
    def choose_what_is_scarce(self, things: tuple[str, ...]) -> None:
        self.things = things

    @rule(names=SEVERAL, count=SIZES, known=st.booleans())
    def create(self, names: list[str], count: int, *, known: bool) -> None:
        for name in names:
            if Key("n", name) not in self.server.objects:
                self.made += 1
                self.counts[name] = dict.fromkeys(self.things, count)
                body = virtual_machine(name, "n", **scarce.asked(self.counts[name]))
                body["metadata"] |= {"uid": f"uid-{self.made}", "finalizers": [], "annotations": {}}
                self.server.write({**body, "status": {}})
            self.tell(name, 999 if known else 0)
        if known:
            self.look("placer", names)

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        self._change(name, deletionTimestamp="2026-11-15T11:00:00Z")

    @rule(name=NAMES, count=SIZES)
    def resize(self, name: str, count: int) -> None:
        if obj := self.server.objects.get(Key("n", name)):
            for thing, before in self.counts[name].items():
                self.counts[name][thing] = max(before, count) if thing in GROWS_ONLY else count
            body = virtual_machine(name, "n", **scarce.asked(self.counts[name]))
            self.server.write({**obj, "spec": body["spec"]})

    @rule(names=SEVERAL)
    def ask_to_move(self, names: list[str]) -> None:
        asked = {MIGRATE_TO: "any", STOP_ALLOWED: "true"}
        for name in names:
            if obj := self.server.objects.get(Key("n", name)):
                self._change(name, annotations=obj["metadata"]["annotations"] | asked)
            self.tell(name, 999)
        self.look("mover", names)

    @rule(name=NAMES, shrinks=st.booleans())
    def carry_out(self, name: str, *, shrinks: bool = True) -> None:
        """Do what is recorded, as the machine's own controller does: make, size, move, remove.

        One that is to have less may have to wait for a restart first.
        """
        obj = self.server.objects.get(Key("n", name))
        if obj is None or (machine := self.kind.machine(obj)).host is None:
            return
        holding = self.kind.holding(obj)
        assert holding is not None
        size = (shrinks and machine.reserved) or holding.resources
        if machine.deleting:
            self._change(name, finalizers=[])
        elif machine.move_over:
            self.server.write(self.kind.moved(obj, placement_of(machine)))
        else:
            status = self.kind.status(obj, *_done(machine, size))
            # What is set aside is the placer's to write, or the two would never come to an end.
            status["reservation"] = obj["status"].get("reservation")
            told = {name: value for name, value in status.items() if value is not None}
            if told != obj["status"]:
                self.server.write({**obj, "status": told})

    @rule(who=st.sampled_from(["placer", "mover"]), names=SEVERAL)
    def look(self, who: str, names: list[str]) -> None:
        """Have hands begin with machines that no other hand of the same one is at."""
        reconcile = {"placer": self.office.placer, "mover": self.office.mover}[who].reconcile
        for name in names:
            if (who, name) not in self.tasks:
                self.tasks[who, name] = self.loop.create_task(reconcile(Key("n", name)))
        self._run(_nothing())

    @precondition(lambda self: self.server.asked)
    @rule(fate=FATES, number=st.integers(0, 9))
    def answer(self, fate: str, number: int) -> None:
        self.server.answer(fate, number)
        self._run(_nothing())

    @precondition(lambda self: self.server.late)
    @rule()
    def arrive(self) -> None:
        try:
            self.server.late.pop(0)()
        except (Conflict, NotFound):
            return  # and nobody hears of it

    @rule(name=NAMES, many=st.integers(1, 5))
    def tell(self, name: str, many: int) -> None:
        self._run(self._told(Key("n", name), many))

    async def _told(self, key: Key, many: int) -> None:
        cache, news = self.office.machines, self.server.news.get(key)
        while news and (many := many - 1) >= 0:
            now = news.popleft()
            (cache.gone if "gone" in now else cache.seen)(now)

    def _change(self, name: str, **metadata: Any) -> None:
        if obj := self.server.objects.get(Key("n", name)):
            self.server.write({**obj, "metadata": obj["metadata"] | metadata})

    def _run(self, first: Coroutine[Any, Any, None]) -> None:
        """Have everybody go on until all wait for the server; failures are tried again by rules."""
        self.loop.run_until_complete(_and_all_that_follows(first))
        for hand in [hand for hand, task in self.tasks.items() if task.done()]:
            error = self.tasks.pop(hand).exception()
            assert error is None or isinstance(error, ApiError), repr(error)

    def _finish(self) -> None:
        """Tell everybody all, and have all be tried again until nothing changes any more."""
        before, rounds = -1, 0
        # In the first round those may end, and fail, who were at it before.
        while before != self.server.version or rounds < 2:
            before, rounds = self.server.version, rounds + 1
            assert rounds < 50, "somebody writes for ever"
            while self.server.late:
                self.arrive()
            for name in "abcde":
                for who in ("placer", "mover"):
                    self.tell(name, 999)
                    self.look(who, [name])
                    while self.server.asked:
                        self.answer("done", 0)
                        self.no_host_is_promised_twice()
                self.carry_out(name)
                self.tell(name, 999)

    @invariant()
    def no_host_is_promised_twice(self) -> None:
        left = self._left()
        assert min(left.values()) >= 0, left

    def _left(self) -> scarce.Left:
        """Return how much of each host is nobody's by what is written."""
        return scarce.left(
            taken
            for obj in self.server.objects.values()
            for taken in (self.kind.holding(obj), self.kind.booking(obj))
            if taken is not None
        )

    @precondition(lambda self: self.made > 2)
    @rule()
    def rest(self) -> None:
        """Have a quiet moment, so that what comes next finds hosts that are nearly full."""
        self._finish()

    def teardown(self) -> None:
        """End all that is under way, also when the test has failed."""
        try:
            self._come_to_rest()
        finally:
            for task in self.tasks.values():
                task.cancel()
            self.loop.run_until_complete(asyncio.sleep(0))
            self.loop.close()

    def _come_to_rest(self) -> None:
        """See that what fits is placed, and that no room is lost."""
        self._finish()
        left, table = self._left(), self.office.ledger.table
        for (thing, host), amount in left.items():
            assert scarce.can_have(table, host, thing, amount), (thing, host, amount)
            assert not scarce.can_have(table, host, thing, amount + 1), (thing, host, amount)
        for machine in map(self.kind.machine, self.server.objects.values()):
            has = (machine.reserved or machine.wanted) if machine.host else None
            more, there = scarce.grown(machine, has), [machine.host] if machine.host else HOSTS
            fitting = (all(left[it, on] >= much for it, much in more.items()) for on in there)
            assert not more or not any(fitting), machine.name


def _done(machine: Machine, size: Resources) -> tuple[Machine, MachineReport]:
    """Return what is so and told of a machine that has what it has, where a move brought it."""
    move, last = machine.move, machine.last_move
    if move:
        machine = replace(machine, host=move.target, devices=move.devices)
        last = MoveReport(move.id, move.source, move.target, NOON, NOON)
        last = replace(last, result=MoveResult.SUCCEEDED)
    others = [each for each in machine.conditions if each.type != "Ready"]
    runs = (*others, Condition("Ready", "True", "Running", since=NOON))
    volumes = tuple(
        SeenVolume(each, mib, Attachment.ATTACHED, volume, each)
        for each, volume, mib in size.shares
    )
    seen = Observed(machine.uid, machine.name, Power.ON, size, volumes=volumes)
    report = MachineReport(None, machine.host, size, frozenset(), seen, runs, move=last)
    return machine, report


async def _and_all_that_follows(first: Coroutine[Any, Any, None]) -> None:
    await first
    for _ in range(10):
        await asyncio.sleep(0)


async def _nothing() -> None:
    """Let others go on."""


TestNoHostIsPromisedTwice = Rush.TestCase
TestNoHostIsPromisedTwice.settings = settings(
    max_examples=300, stateful_step_count=50, deadline=None
)
