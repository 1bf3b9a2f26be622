"""Any history of calls, each given once or twice, ends where a trivial model says it ends."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from conformance.conftest import DRIVERS
from conformance.under_test import DriverUnderTest
from novacron.core.driver import Accepted
from novacron.core.errors import Busy, DriverError, OutOfCapacity, Rejected
from novacron.core.machine import MachinePlan, Power, Resources

T = TypeVar("T")

ALL = ("uid-1", "uid-2", "uid-3")
UIDS = st.sampled_from(ALL)
SIZES = st.sampled_from(["small", "large", "too_big"])
TWICE = st.booleans()
WAITING = st.booleans()


@dataclass(frozen=True)
class Modelled:
    """All that the model knows of a machine."""

    power: Power
    size: Resources


class AnySequence(RuleBasedStateMachine):
    """A driver beside a dictionary.

    While anything is under way the driver may say Busy, or that room is not free yet; then
    nothing may have happened. What it accepts must come true, however long that takes.
    """

    def __init__(self, under_test: DriverUnderTest) -> None:
        super().__init__()
        self.under_test = under_test
        self.stack = AsyncExitStack()
        self.model: dict[str, Modelled] = {}
        self.quiet = True

    @initialize()
    def open_bench(self) -> None:
        """Not in the constructor: hypothesis makes machines that it neither runs nor ends."""
        self.loop = asyncio.new_event_loop()
        directory = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        self.bench = self.run(self.stack.enter_async_context(self.under_test.bench(directory)))
        self.driver = self.bench.connect()

    def run(self, call: Awaitable[T]) -> T:
        return self.loop.run_until_complete(call)

    @rule(uid=UIDS, size=SIZES, twice=TWICE, waiting=WAITING)
    def create(self, uid: str, size: str, twice: bool, waiting: bool) -> None:
        plan = self.plan(uid, size)
        expected = self.expected_of_create(uid, plan.resources)
        if self.order(partial(self.driver.create, plan), expected, twice, waiting):
            self.model.setdefault(uid, Modelled(Power.OFF, plan.resources))

    @rule(uid=UIDS, size=SIZES, twice=TWICE, waiting=WAITING)
    def resize(self, uid: str, size: str, twice: bool, waiting: bool) -> None:
        plan = self.plan(uid, size)
        expected = self.expected_of_resize(uid, plan.resources)
        if self.order(partial(self.driver.resize, plan), expected, twice, waiting):
            self.model[uid] = replace(self.model[uid], size=plan.resources)

    @rule(uid=UIDS, want=st.sampled_from(Power), force=st.booleans(), twice=TWICE, waiting=WAITING)
    def set_power(self, uid: str, want: Power, force: bool, twice: bool, waiting: bool) -> None:
        ref = self.plan(uid).ref
        expected = None if uid in self.model else Busy
        call = partial(self.driver.set_power, ref, want, force=force)
        if self.order(call, expected, twice, waiting):
            self.model[uid] = replace(self.model[uid], power=want)

    @rule(uid=UIDS, twice=TWICE, waiting=WAITING)
    def delete(self, uid: str, twice: bool, waiting: bool) -> None:
        ref = self.plan(uid).ref
        if self.order(partial(self.driver.delete, ref), None, twice, waiting):
            self.model.pop(uid, None)

    @rule()
    def reconnect(self) -> None:
        """An operator that was killed and started again."""
        self.driver = self.bench.connect()

    @rule(uid=UIDS)
    def power_off_behind_our_back(self, uid: str) -> None:
        self.settle()
        if uid in self.model:
            self.run(self.bench.disturb.power_off(uid))
            if not self.bench.restarts_guests:
                self.model[uid] = replace(self.model[uid], power=Power.OFF)
            self.settle()

    @rule(uid=UIDS)
    def destroy_behind_our_back(self, uid: str) -> None:
        self.settle()
        if self.model.pop(uid, None):
            self.run(self.bench.disturb.destroy(uid))

    @invariant()
    def the_driver_agrees_with_the_model(self) -> None:
        if self.quiet:
            told = self.run(self.driver.machines(self.bench.host))
            assert {m.uid: Modelled(m.power, m.configured) for m in told} == self.model
            for uid in ALL:
                seen = self.run(self.driver.observe(self.plan(uid).ref))
                assert seen == next((m for m in told if m.uid == uid), None)

    def teardown(self) -> None:
        try:
            self.settle()
            self.the_driver_agrees_with_the_model()
        finally:
            self.run(self.stack.aclose())
            self.loop.close()

    def order(
        self,
        call: Callable[[], Awaitable[Accepted]],
        expected: type[DriverError] | None,
        twice: bool,
        waiting: bool,
    ) -> bool:
        """Give an order once or twice, check its answer, and say whether it was accepted."""
        answers = [self.answer(call) for _ in range(2 if twice else 1)]
        if self.quiet:
            assert set(answers) == {expected}
        else:
            assert set(answers) <= {None, expected, Busy, OutOfCapacity}
        assert answers[0] is not None or answers[-1] is None, "what was accepted stays accepted"
        self.quiet = False
        if waiting:
            self.settle()
        return None in answers

    def answer(self, call: Callable[[], Awaitable[Accepted]]) -> type[DriverError] | None:
        try:
            self.run(call())
        except DriverError as error:
            return type(error)
        return None

    def settle(self) -> None:
        for uid in ALL:
            self.run(self.bench.settled(self.driver, self.plan(uid).ref))
        self.quiet = True

    def plan(self, uid: str, size: str = "small") -> MachinePlan:
        if size == "too_big" and not self.bench.limited:
            size = "large"  # it would be taken, and never come to rest
        return self.bench.plan(uid, name=f"vm-{uid}", size=getattr(self.bench, size))

    def expected_of_create(self, uid: str, size: Resources) -> type[DriverError] | None:
        if uid in self.model or self.has_room(size):
            return None
        return OutOfCapacity

    def expected_of_resize(self, uid: str, size: Resources) -> type[DriverError] | None:
        if uid not in self.model:
            return Busy
        has = self.model[uid].size
        if size.disk_mib < has.disk_mib:
            return Rejected
        growth = Resources(
            max(size.vcpus - has.vcpus, 0),
            max(size.memory_mib - has.memory_mib, 0),
            size.disk_mib - has.disk_mib,
        )
        return None if self.has_room(growth) else OutOfCapacity

    def has_room(self, more: Resources) -> bool:
        used = sum((machine.size for machine in self.model.values()), Resources())
        room = self.bench.room
        return more != self.bench.too_big if room is None else (used + more).fits(room)


@pytest.mark.parametrize(
    "under_test",
    [pytest.param(each, marks=[pytest.mark.full] if each.slow else []) for each in DRIVERS],
    ids=lambda each: each.name,
)
def test_any_history_ends_where_the_model_says(
    request: pytest.FixtureRequest, under_test: DriverUnderTest
) -> None:
    """Examples show what we thought of; this finds the order of calls nobody thought of."""
    if under_test.needs:
        request.getfixturevalue(under_test.needs)
    run_state_machine_as_test(
        partial(AnySequence, under_test),  # type: ignore[arg-type]
        settings=settings(
            max_examples=under_test.examples,
            stateful_step_count=25,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
