"""The operator's plain HTTP listeners: /healthz and /readyz on one address, /metrics on another.

What is healthy, ready or counted is given; nothing here knows what the checks look at.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from prometheus_client import CollectorRegistry, generate_latest

from novacron.runtime.bind import Bind
from novacron.runtime.http_server import Ask, Handler, HttpServer, Reply

__all__ = ["Check", "StatusServer"]

# A check returns nothing when all is well, or the reason why it is not.
Check = Callable[[], str | None]

# Prometheus asks every 15 to 60 seconds, a kubelet every 10.
KEEP_ALIVE_SECONDS = 75.0
LARGEST_BODY = 2**16
METRICS = "text/plain; version=0.0.4; charset=utf-8"


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
    _servers: list[HttpServer] = field(default_factory=list)

    async def start(self) -> None:
        """Listen on both addresses, or on none when one of them is taken."""
        try:
            if self.health:
                routes = {"/healthz": self._healthz, "/readyz": self._readyz}
                self.health_port = await self._listen(self.health, routes)
            if self.metrics:
                self.metrics_port = await self._listen(self.metrics, {"/metrics": self._metrics})
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop listening; answers under way have the deadline to finish."""
        while self._servers:
            await self._servers.pop().stop(self.stop_within.total_seconds())

    async def _listen(self, bind: Bind, routes: Mapping[str, Handler]) -> int:
        def answer(ask: Ask) -> Reply:
            if (handler := routes.get(ask.path)) is None:
                return Reply(404, f"nothing is served at {ask.path}".encode())
            if ask.method not in ("GET", "HEAD"):
                return Reply(405, b"this is only read, by GET")
            return handler(ask)

        server = HttpServer(
            answer, largest_body=LARGEST_BODY, keep_alive_seconds=KEEP_ALIVE_SECONDS
        )
        port = await bind.listen(server)
        self._servers.append(server)
        return port

    def _healthz(self, ask: Ask) -> Reply:
        return _answer("healthz", self.live, verbose=_verbose(ask))

    def _readyz(self, ask: Ask) -> Reply:
        return _answer("readyz", self.ready, verbose=_verbose(ask))

    def _metrics(self, _: Ask) -> Reply:
        return Reply(200, generate_latest(self.registry), METRICS)


def _verbose(ask: Ask) -> bool:
    return any(part.partition("=")[0] == "verbose" for part in ask.query.split("&"))


def _answer(name: str, checks: Mapping[str, Check], *, verbose: bool) -> Reply:
    """Answer the way Kubernetes' own components do, so that people can read it."""
    reasons = {check: run() for check, run in checks.items()}
    failed = any(reason is not None for reason in reasons.values())
    if not failed and not verbose:
        return Reply(200, b"ok")
    lines = [
        f"[+]{check} ok" if reason is None else f"[-]{check} failed: {reason}"
        for check, reason in reasons.items()
    ]
    lines.append(f"{name} check {'failed' if failed else 'passed'}\n")
    return Reply(500 if failed else 200, "\n".join(lines).encode())
