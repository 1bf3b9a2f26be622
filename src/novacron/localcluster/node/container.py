"""One container of a pod over all its runs: started, watched, started again as its pod wants."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from novacron.localcluster.node.backoff import Backoff, restarts
from novacron.localcluster.node.environment import Unmet
from novacron.localcluster.node.fields import UnknownField
from novacron.localcluster.node.launcher import Launcher, NotStarted
from novacron.localcluster.node.probes import Probes
from novacron.localcluster.node.records import ContainerRecord, Start
from novacron.localcluster.node.status import Running, State, Terminated, View, Waiting
from novacron.localcluster.node.termination import terminated
from novacron.localcluster.node.waiting import end, ended
from novacron.runtime.resource import Object

__all__ = ["Container", "Narrator"]

TRY_AGAIN_SECONDS = 5.0


class Narrator(Protocol):
    """Tells events about the pod."""

    def normal(self, reason: str, message: str) -> None:
        """Say that something went as it should."""

    def warning(self, reason: str, message: str) -> None:
        """Say that something needs a look."""


@dataclass(slots=True)
class Container:
    """One container; ``changed`` is called whenever its view is another."""

    spec: Object
    record: ContainerRecord
    policy: str
    grace: timedelta
    changed: Callable[[], None]
    narrator: Narrator
    interrupted: bool = False
    _state: State = field(default_factory=lambda: Waiting("ContainerCreating"))
    _last: Terminated | None = None
    _restarts: int = 0
    _ready: bool = False
    _started: bool = False
    _backoff: Backoff = field(default_factory=Backoff)
    _ending: "asyncio.Task[None] | None" = None

    @property
    def name(self) -> str:
        """Return what the pod calls it."""
        return str(self.spec["name"])

    def view(self) -> View:
        """Return it as it is now."""
        return View(
            self.name,
            self.spec["image"],
            self._state,
            self._last,
            self._restarts,
            self._ready,
            self._started,
        )

    def wait_because(self, reason: str, message: str = "") -> None:
        """Say why it does not run."""
        self._set(Waiting(reason, message))

    def recall(self, known: Object | None) -> None:
        """Begin with what is on record; ``known`` is what the pod's status says of it."""
        start = self.record.start()
        if start is None:
            return
        self._restarts = start.attempt
        self._backoff.ends = start.attempt
        if start.attempt:
            self._last = terminated(self.record, self.spec, start.attempt - 1)
        if start.keeper.alive():
            self.record.survived(start.attempt)
            self._state = Running(start.at)
            # The process is the same one, so what its probes had found still holds.
            self._ready = bool((known or {}).get("ready"))
            self._started = bool((known or {}).get("started"))
        else:
            self._state = terminated(self.record, self.spec, start.attempt)

    async def run(self, launcher: Launcher, address: str) -> Terminated:
        """Run it until its pod wants no further run; return how the last one ended."""
        start = self.record.start()
        while True:
            if start is None:
                start = await self._start(launcher)
            self._restarts = start.attempt
            # One that ended while no agent looked must not look as if it ran once more.
            if start.keeper.alive():
                await self._live(start, launcher, address)
            how = terminated(self.record, self.spec, start.attempt)
            self.interrupted = self.record.was_interrupted(start.attempt)
            again = self.policy != "Never" if self.interrupted else restarts(self.policy, how.code)
            if not again:
                self._set(how)
                return how
            await self._pause(how)
            start = None

    async def stop(self, grace: timedelta) -> None:
        """End the run that is under way, if any, and take in how it ended."""
        start = self.record.start()
        if start is None:
            return
        if start.keeper.alive():
            await end(start, grace)
        self._set(terminated(self.record, self.spec, start.attempt))

    async def _start(self, launcher: Launcher) -> Start:
        before = self.record.start()
        attempt = before.attempt + 1 if before else 0
        while True:
            try:
                start = await _to_the_end(launcher.start(self.spec, attempt))
            except (Unmet, UnknownField) as missing:
                self._cannot("CreateContainerConfigError", str(missing))
            except (NotStarted, OSError) as error:
                self._cannot("RunContainerError", str(error))
            else:
                self.narrator.normal("Started", f"Started container {self.name}")
                self._ready = self._started = False
                self.record.forget(attempt - 2)
                return start
            await asyncio.sleep(TRY_AGAIN_SECONDS)

    def _cannot(self, reason: str, message: str) -> None:
        self.wait_because(reason, message)
        self.narrator.warning("Failed", f"container {self.name}: {message}")

    async def _live(self, start: Start, launcher: Launcher, address: str) -> None:
        self._set(Running(start.at))
        watch = _Watch(self)
        probes = Probes(
            self.spec, address, lambda line: launcher.errand(self.spec, start, line), watch
        )
        asking = asyncio.create_task(probes.run())
        try:
            await ended(start.keeper)
        finally:
            asking.cancel()
            with suppress(asyncio.CancelledError):
                await asking
        self._ready = self._started = False

    async def _pause(self, how: Terminated) -> None:
        self._last = how
        lasted = _moment(how.until) - _moment(how.since)
        pause = timedelta() if self.interrupted else self._backoff.pause_after(lasted)
        if pause:
            seconds = int(pause.total_seconds())
            message = f"back-off {seconds}s restarting failed container={self.name}"
            self.wait_because("CrashLoopBackOff", message)
            self.narrator.warning("BackOff", f"Back-off restarting failed container {self.name}")
        else:
            self.wait_because("ContainerCreating")
        await asyncio.sleep(pause.total_seconds())

    def _set(self, state: State) -> None:
        self._state = state
        if isinstance(state, Terminated):
            self._ready = self._started = False
        self.changed()

    # What the probes find.

    def hear(self, *, started: bool | None = None, ready: bool | None = None) -> None:
        """Take in what the probes say."""
        self._started = self._started if started is None else started
        self._ready = self._ready if ready is None else ready
        self.changed()

    def give_up(self, probe: str) -> None:
        """End the run because a probe says that it is of no use."""
        message = f"Container {self.name} failed {probe} probe, will be restarted"
        self.narrator.normal("Killing", message)
        seconds = self.spec[f"{probe}Probe"].get("terminationGracePeriodSeconds")
        grace = self.grace if seconds is None else timedelta(seconds=seconds)
        start = self.record.start()
        if start:
            self._ending = asyncio.create_task(end(start, grace))


@dataclass(frozen=True, slots=True)
class _Watch:
    """Hears the probes of one run for its container."""

    container: Container

    def started(self) -> None:
        self.container.hear(started=True)

    def ready(self, *, ready: bool) -> None:
        self.container.hear(ready=ready)

    def unhealthy(self, probe: str, words: str) -> None:
        self.container.narrator.warning("Unhealthy", f"{probe} probe failed: {words}")

    def hopeless(self, probe: str) -> None:
        self.container.give_up(probe)


async def _to_the_end(starting: Coroutine[None, None, Start]) -> Start:
    """Wait for a start, also when cancelled: half a start would be a process nobody knows."""
    task = asyncio.create_task(starting)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
