"""The probes of one running container: startup first, then liveness and readiness side by side."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from novacron.localcluster.node.asking import Answer, ask_command, ask_http, ask_tcp, port_of
from novacron.localcluster.node.enter import Errand
from novacron.localcluster.node.verdict import Pace, Verdict
from novacron.runtime.resource import Object

__all__ = ["Listener", "Probes"]


class Listener(Protocol):
    """Who is told what the probes find."""

    def started(self) -> None:
        """Hear that the container has started up."""

    def ready(self, *, ready: bool) -> None:
        """Hear whether it can be used now."""

    def unhealthy(self, probe: str, words: str) -> None:
        """Hear that a probe was answered badly once."""

    def hopeless(self, probe: str) -> None:
        """Hear that it must be started again."""


@dataclass(frozen=True, slots=True)
class Probes:
    """What is asked of one run of a container."""

    container: Object
    address: str
    errand: Callable[[list[str]], Errand]
    listener: Listener

    async def run(self) -> None:
        """Ask as long as the container runs; whoever waits for its end cancels this."""
        startup = self.container.get("startupProbe")
        if startup and not await self._start_up(startup):
            return
        self.listener.started()
        readiness, liveness = (
            self.container.get(field) for field in ("readinessProbe", "livenessProbe")
        )
        if not readiness:
            self.listener.ready(ready=True)
        async with asyncio.TaskGroup() as group:
            if readiness:
                group.create_task(self._readiness(readiness))
            if liveness:
                group.create_task(self._liveness(liveness))

    async def _start_up(self, probe: Object) -> bool:
        pace, verdict = Pace.of(probe), Verdict.of(probe, holds=False)
        await asyncio.sleep(pace.delay.total_seconds())
        while True:
            decided = verdict.take(good=await self._good("Startup", probe, pace))
            if decided and verdict.holds:
                return True
            if decided:
                self.listener.hopeless("startup")
                return False
            await asyncio.sleep(pace.period.total_seconds())

    async def _readiness(self, probe: Object) -> None:
        pace, verdict = Pace.of(probe), Verdict.of(probe, holds=False)
        await asyncio.sleep(pace.delay.total_seconds())
        while True:
            if verdict.take(good=await self._good("Readiness", probe, pace)):
                self.listener.ready(ready=verdict.holds)
            await asyncio.sleep(pace.period.total_seconds())

    async def _liveness(self, probe: Object) -> None:
        pace, verdict = Pace.of(probe), Verdict.of(probe, holds=True)
        await asyncio.sleep(pace.delay.total_seconds())
        while True:
            if verdict.take(good=await self._good("Liveness", probe, pace)) and not verdict.holds:
                self.listener.hopeless("liveness")
                return
            await asyncio.sleep(pace.period.total_seconds())

    async def _good(self, name: str, probe: Object, pace: Pace) -> bool:
        try:
            async with asyncio.timeout(pace.timeout.total_seconds()):
                answer = await self._ask(probe)
        except TimeoutError:
            answer = Answer(good=False, words=f"no answer in {pace.timeout.total_seconds():g} s")
        except OSError as error:  # the container may be ending this moment
            answer = Answer(good=False, words=str(error))
        if not answer.good:
            self.listener.unhealthy(name, answer.words)
        return answer.good

    async def _ask(self, probe: Object) -> Answer:
        if command := probe.get("exec"):
            return await ask_command(self.errand(list(command["command"])))
        action = probe.get("httpGet") or probe["tcpSocket"]
        host, port = action.get("host") or self.address, port_of(self.container, action["port"])
        if "httpGet" in probe:
            return await ask_http(host, port, action)
        return await ask_tcp(host, port)
