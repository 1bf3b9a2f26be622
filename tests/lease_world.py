"""Processes that share leases, in one loop whose time and network a test decides.

Every request to the leases has two moments that the test picks: when it takes effect and when
its answer arrives; it may also take effect long after the sender gave up. Each process has a
clock with an origin of its own.
"""

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from novacron.runtime.claims import Claims
from novacron.runtime.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    LeaseLost,
    NotFound,
    Unreachable,
)
from novacron.runtime.leases import Lease, LeaseTiming
from novacron.runtime.membership import Membership
from novacron.runtime.resource import Object

PATIENCE_SECONDS = 2.0


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose time stands still until told otherwise."""

    now = 0.0

    def time(self) -> float:
        return self.now


class Store:
    """Leases in memory, with the API server's rules for preconditions."""

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}
        self._versions = itertools.count(1)

    def list(self) -> list[Lease]:
        return [self.get(name) for name in sorted(self.objects)]

    def get(self, name: str) -> Lease:
        if name not in self.objects:
            raise NotFound(f"no lease {name}")
        return Lease(deepcopy(self.objects[name]))

    def create(self, lease: Lease) -> Lease:
        if lease.name in self.objects:
            raise AlreadyExists(f"lease {lease.name} exists")
        return self._write(lease, f"uid-{next(self._versions)}")

    def replace(self, lease: Lease) -> Lease:
        if lease.name not in self.objects:
            # What the real server says when the body carries a UID.
            raise Conflict(f"lease {lease.name} is gone")
        if (lease.version, lease.uid) != ((now := self.get(lease.name)).version, now.uid):
            raise Conflict(f"lease {lease.name} changed")
        return self._write(lease, lease.uid)

    def delete(self, lease: Lease) -> None:
        if lease.name not in self.objects:
            raise NotFound(f"no lease {lease.name}")
        if self.objects[lease.name]["metadata"]["uid"] != lease.uid:
            raise Conflict("another UID")
        del self.objects[lease.name]

    def _write(self, lease: Lease, uid: str) -> Lease:
        body = deepcopy(lease.body)
        body["metadata"] |= {"uid": uid, "resourceVersion": str(next(self._versions))}
        self.objects[lease.name] = body
        return self.get(lease.name)


@dataclass(eq=False)
class Call:
    """A request on its way."""

    sender: str
    effect: Callable[[], object]
    answer: asyncio.Future[Any]
    sent: float
    landed: bool = False
    outcome: object = None

    def land(self) -> None:
        """Take effect, once."""
        if self.landed:
            return
        self.landed = True
        try:
            self.outcome = self.effect()
        except ApiError as error:
            self.outcome = error

    def deliver(self) -> None:
        if self.answer.done():
            return
        if isinstance(self.outcome, ApiError):
            self.answer.set_exception(self.outcome)
        else:
            self.answer.set_result(self.outcome)


class SlowLeases:
    """One process's way to the store."""

    group = "test"

    def __init__(self, sender: str, store: Store, calls: list[Call]) -> None:
        self._sender = sender
        self._store = store
        self._calls = calls

    async def list(self) -> list[Lease]:
        leases: list[Lease] = await self._send(self._store.list)
        return leases

    async def get(self, name: str) -> Lease:
        return await self._lease(lambda: self._store.get(name))

    async def create(self, lease: Lease) -> Lease:
        return await self._lease(lambda: self._store.create(lease))

    async def replace(self, lease: Lease) -> Lease:
        return await self._lease(lambda: self._store.replace(lease))

    async def delete(self, lease: Lease) -> None:
        await self._send(lambda: self._store.delete(lease))

    async def _lease(self, effect: Callable[[], Lease]) -> Lease:
        lease: Lease = await self._send(effect)
        return lease

    async def _send(self, effect: Callable[[], object]) -> Any:
        loop = asyncio.get_running_loop()
        call = Call(self._sender, effect, loop.create_future(), loop.time())
        self._calls.append(call)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                return await call.answer
        except TimeoutError as error:
            raise Unreachable("no answer") from error


@dataclass(eq=False)
class Process:
    """A process of ours; ``exited`` tells how it ended."""

    name: str
    claims: Claims
    membership: Membership
    task: asyncio.Task[None]
    handovers: list[tuple[str, str, asyncio.Future[None]]] = field(default_factory=list)
    lost: bool = False

    @property
    def running(self) -> bool:
        return not self.lost and not self.task.done()

    def usable(self) -> frozenset[str]:
        """The claims under which a write would go out now."""
        if not self.running:
            return frozenset()
        try:
            self.membership.seconds_left()
        except LeaseLost:
            return frozenset()
        return self.claims.held


class World:
    """Time, network and processes."""

    def __init__(self, timing: LeaseTiming | None = None) -> None:
        self.timing = timing or LeaseTiming()
        self.loop = VirtualLoop()
        self.store = Store()
        self.calls: list[Call] = []
        self.processes: list[Process] = []
        self.cut_off: set[str] = set()
        self.lags: dict[str, float] = {}
        self.always: Callable[[], None] = lambda: None

    def start(self, shards: int = 1, *, instant: bool = True) -> Process:
        """Start a process; unless instant, the test ends each of its hand-overs itself."""
        name = f"p{len(self.processes)}"
        offset = 1000.0 * len(self.processes)
        membership = Membership(
            SlowLeases(name, self.store, self.calls),
            timing=self.timing,
            identity=name,
            clock=lambda: self.loop.now + offset,
            on_lost=lambda: setattr(process, "lost", True),
        )
        claims = Claims(membership, shards)
        task = self.loop.create_task(_until_lost(claims.run()))
        process = Process(name, claims, membership, task)

        async def hand_over(kind: str, claim: str) -> None:
            done: asyncio.Future[None] = self.loop.create_future()
            process.handovers.append((kind, claim, done))
            if not instant:
                await done

        claims.gained = lambda claim: hand_over("gained", claim)
        claims.drain = lambda claim: hand_over("drain", claim)
        self.processes.append(process)
        self.settle()
        return process

    def kill(self, process: Process) -> None:
        """End a process as kill -9 does; what it sent stays on its way."""
        process.lost = True
        process.task.cancel()
        self.settle()

    def settle(self) -> None:
        """Let everybody run until all wait for time or network; check what is always true."""
        self.loop.run_until_complete(_spin())
        self.always()

    def serve(self) -> None:
        """Let requests take effect and be answered, in order, and those that follow."""
        while True:
            passing = [call for call in self.calls if call.sender not in self.cut_off]
            for call in passing:
                call.land()
            due = [c for c in passing if self.loop.now - c.sent >= self.lags.get(c.sender, 0.0)]
            if not due:
                break
            self.answer(due[0])

    def answer(self, call: Call) -> None:
        """Let one request take effect, unless it did, and be answered."""
        call.land()
        call.deliver()
        self.calls.remove(call)
        self.settle()

    def advance(self, seconds: float) -> None:
        """Let time pass without any network."""
        self.loop.now += seconds
        self.settle()

    def live(self, seconds: float, step: float = 0.25) -> None:
        """Let time pass on a good network, for those who have one; hand-overs end at once."""
        for _ in range(int(seconds / step)):
            self.advance(step)
            self.serve()
            for process in self.processes:
                for _, _, done in process.handovers:
                    if not done.done():
                        done.set_result(None)
            self.settle()
            self.serve()

    def close(self) -> None:
        """End all tasks."""
        for process in self.processes:
            process.task.cancel()
        self.settle()
        self.loop.close()

    @property
    def running(self) -> list[Process]:
        return [process for process in self.processes if process.running]

    def users(self, claim: str) -> list[str]:
        """Return the processes that could act under a claim now."""
        return [process.name for process in self.processes if claim in process.usable()]


async def _until_lost(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except* LeaseLost:
        pass


async def _spin() -> None:
    for _ in range(12):
        await asyncio.sleep(0)
