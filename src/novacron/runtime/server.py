"""The operator's plain HTTP listeners: /healthz and /readyz on one address, /metrics on another.

What is healthy, ready or counted is given; nothing here knows what the checks look at.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest

from novacron.runtime.bind import Bind

__all__ = ["Check", "StatusServer"]

# A check returns nothing when all is well, or the reason why it is not.
Check = Callable[[], str | None]


@dataclass(slots=True)
class StatusServer:
    """Tells probes and Prometheus how the operator is. The checks are read at every request."""

    health: Bind | None
    metrics: Bind | None
    registry: CollectorRegistry
    live: Mapping[str, Check] = field(default_factory=dict)
    ready: Mapping[str, Check] = field(default_factory=dict)
    stop_within: timedelta = timedelta(seconds=2)
    health_port: int = 0
    metrics_port: int = 0
    _runners: list[web.AppRunner] = field(default_factory=list)

    async def start(self) -> None:
        """Listen on both addresses, or on none when one of them is taken."""
        try:
            if self.health:
                routes = [web.get("/healthz", self._healthz), web.get("/readyz", self._readyz)]
                self.health_port = await self._listen(self.health, routes)
            if self.metrics:
                routes = [web.get("/metrics", self._metrics)]
                self.metrics_port = await self._listen(self.metrics, routes)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop listening; answers under way have the deadline to finish."""
        while self._runners:
            await self._runners.pop().cleanup()

    async def _listen(self, bind: Bind, routes: list[web.RouteDef]) -> int:
        app = web.Application()
        app.add_routes(routes)
        # aiohttp waits this long for answers and as long again for cancelled ones.
        patience = self.stop_within.total_seconds() / 2
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=patience)
        port = await bind.listen(runner)
        self._runners.append(runner)
        return port

    async def _healthz(self, request: web.Request) -> web.Response:
        return _answer("healthz", self.live, verbose="verbose" in request.query)

    async def _readyz(self, request: web.Request) -> web.Response:
        return _answer("readyz", self.ready, verbose="verbose" in request.query)

    async def _metrics(self, _: web.Request) -> web.Response:
        headers = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
        return web.Response(body=generate_latest(self.registry), headers=headers)


def _answer(name: str, checks: Mapping[str, Check], *, verbose: bool) -> web.Response:
    """Answer the way Kubernetes' own components do, so that people can read it."""
    reasons = {check: run() for check, run in checks.items()}
    failed = any(reason is not None for reason in reasons.values())
    if not failed and not verbose:
        return web.Response(text="ok")
    lines = [
        f"[+]{check} ok" if reason is None else f"[-]{check} failed: {reason}"
        for check, reason in reasons.items()
    ]
    lines.append(f"{name} check {'failed' if failed else 'passed'}\n")
    return web.Response(text="\n".join(lines), status=500 if failed else 200)
