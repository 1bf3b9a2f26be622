"""Whatever happens when, nothing is ever in two hands, and in the end all is in good hands."""

from datetime import timedelta

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from lease_world import Process, World
from novacron.runtime.leases import LeaseTiming
from novacron.runtime.resource import Key
from novacron.runtime.shards import shard_names

# Without the margin that hides mistakes of order: a write here takes no time to die out.
TIGHT = LeaseTiming(duration=timedelta(seconds=9), renew_deadline=timedelta(seconds=8.99))
KEYS = [Key("default", f"vm-{number}") for number in range(12)]
PICK = st.integers(min_value=0, max_value=1000)
# Longer ones without any answer would only end everybody; a process can be cut off for longer.
PAUSES = st.sampled_from([0.01, 0.3, 0.5, 1.0, 1.9, 2.0, 3.0])


class SharedClaims(RuleBasedStateMachine):
    """Processes start, die and stop; requests are slow, lost or late; time jumps."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(TIGHT)
        self.world.always = self.nothing_is_in_two_hands
        for _ in range(2):
            self.world.start(3)
        self.world.live(1)

    def _pick(self, pick: int) -> Process:
        running = self.world.running
        return running[pick % len(running)]

    @precondition(lambda self: len(self.world.running) < 4)
    @rule(shards=st.sampled_from([3, 3, 3, 3, 3, 3, 2, 1]), instant=st.booleans())
    def start(self, shards: int, instant: bool) -> None:
        self.world.start(shards, instant=instant)

    @precondition(lambda self: len(self.world.running) > 2)
    @rule(pick=PICK)
    def kill(self, pick: int) -> None:
        self.world.kill(self._pick(pick))

    @precondition(lambda self: len(self.world.running) > 2)
    @rule(pick=PICK)
    def stop(self, pick: int) -> None:
        self._pick(pick).claims.stop()
        self.world.settle()

    @rule(seconds=PAUSES)
    def wait(self, seconds: float) -> None:
        self.world.advance(seconds)

    @rule(seconds=st.sampled_from([1.0, 2.0, 5.0, 11.0]))
    def good_network(self, seconds: float) -> None:
        self.world.live(seconds, 0.5)

    @precondition(lambda self: self.world.calls)
    @rule()
    def serve(self) -> None:
        self.world.serve()

    @precondition(lambda self: self.world.calls)
    @rule(pick=PICK)
    def land(self, pick: int) -> None:
        self.world.calls[pick % len(self.world.calls)].land()

    @precondition(lambda self: self.world.calls)
    @rule(pick=PICK)
    def answer(self, pick: int) -> None:
        self.world.answer(self.world.calls[pick % len(self.world.calls)])

    @precondition(lambda self: self.world.running)
    @rule(pick=PICK)
    def cut_off(self, pick: int) -> None:
        self.world.cut_off ^= {self._pick(pick).name}

    @precondition(lambda self: self.world.running)
    @rule(pick=PICK, seconds=st.sampled_from([0.0, 0.5, 1.5]))
    def answer_late(self, pick: int, seconds: float) -> None:
        self.world.lags[self._pick(pick).name] = seconds

    @precondition(lambda self: self.world.running)
    @rule(pick=PICK)
    def finish_handover(self, pick: int) -> None:
        waiting = [h for h in self._pick(pick).handovers if not h[2].done()]
        if waiting:
            waiting[pick % len(waiting)][2].set_result(None)
            self.world.settle()

    def nothing_is_in_two_hands(self) -> None:
        owners: dict[object, str] = {}
        for process in self.world.processes:
            held = process.usable()
            for thing in held & {"leader"} | {
                key for key in KEYS if process.claims.claim_for(key) in held
            }:
                assert owners.setdefault(thing, process.name) == process.name, thing

    def teardown(self) -> None:
        """After quiet time, live processes hold everything in fair shares."""
        try:
            self.world.cut_off.clear()
            self.world.lags.clear()
            self.world.live(60, 0.5)
            counts = {process.claims.shards for process in self.world.running}
            if len(counts) == 1:
                self.check_shares(counts.pop())
        finally:
            self.world.close()

    def check_shares(self, shards: int) -> None:
        running = self.world.running
        assert len(self.world.users("leader")) == 1
        names = shard_names(shards)
        assert all(len(self.world.users(name)) == 1 for name in names)
        sizes = [len(process.usable() - {"leader"}) for process in running]
        assert max(sizes) - min(sizes) <= 1
        assert sum(sizes) == len(names)


SharedClaims.TestCase.settings = settings(
    max_examples=30,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestSharedClaims = SharedClaims.TestCase
