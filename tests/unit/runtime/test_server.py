"""Health, readiness and metrics over real sockets."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Counter

from novacron.runtime.bind import Bind, PortTaken
from novacron.runtime.server import Check, StatusServer

HEALTH = Bind("127.0.0.1", 0, "health probes", "--health-probe-bind-addr")
METRICS = Bind("127.0.0.1", 0, "metrics", "--metrics-bind-addr")


@asynccontextmanager
async def serving(
    live: dict[str, Check] | None = None, ready: dict[str, Check] | None = None
) -> AsyncIterator[StatusServer]:
    server = StatusServer(HEALTH, METRICS, CollectorRegistry(), live or {}, ready or {})
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


async def get(port: int, path: str) -> tuple[int, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}{path}") as response,
    ):
        return response.status, await response.text()


async def test_a_healthy_operator_says_ok() -> None:
    """No check at all is healthy too."""
    async with serving() as server:
        assert await get(server.health_port, "/healthz") == (200, "ok")
        assert await get(server.health_port, "/readyz") == (200, "ok")


async def test_a_failed_check_is_named_with_its_reason() -> None:
    """Whoever looks at a failing probe wants to know which part and why."""
    ready: dict[str, Check] = {"caches": lambda: "hosts not listed yet", "webhooks": lambda: None}
    async with serving(live={"leases": lambda: "lost"}, ready=ready) as server:
        assert await get(server.health_port, "/healthz") == (
            500,
            "[-]leases failed: lost\nhealthz check failed\n",
        )
        status, text = await get(server.health_port, "/readyz")
        assert status == 500
        assert text == (
            "[-]caches failed: hosts not listed yet\n[+]webhooks ok\nreadyz check failed\n"
        )
        del ready["caches"]
        assert (await get(server.health_port, "/readyz"))[0] == 200


async def test_verbose_lists_what_is_checked() -> None:
    """The same words as Kubernetes' own components."""
    async with serving(ready={"caches": lambda: None}) as server:
        expected = (200, "[+]caches ok\nreadyz check passed\n")
        assert await get(server.health_port, "/readyz?verbose") == expected


async def test_metrics_are_served_on_their_own_port() -> None:
    """Metrics may be open to Prometheus while probes stay with the kubelet."""
    async with serving() as server:
        Counter("apples", "Apples seen.", registry=server.registry).inc()
        status, text = await get(server.metrics_port, "/metrics")
        assert status == 200
        assert "apples_total 1.0" in text
        assert (await get(server.metrics_port, "/healthz"))[0] == 404
        assert (await get(server.health_port, "/metrics"))[0] == 404


async def test_listeners_can_be_switched_off() -> None:
    """An address of 0 means no listener."""
    server = StatusServer(None, None, CollectorRegistry())
    await server.start()
    assert (server.health_port, server.metrics_port) == (0, 0)
    await server.stop()


async def test_when_one_port_is_taken_the_other_is_given_back() -> None:
    """A failed start leaves nothing half-done."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        metrics = Bind("127.0.0.1", taken.getsockname()[1], "metrics", "--metrics-bind-addr")
        server = StatusServer(HEALTH, metrics, CollectorRegistry())
        with pytest.raises(PortTaken):
            await server.start()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.health_port))


async def test_a_client_that_never_finishes_does_not_hold_up_the_stop() -> None:
    """Termination has a deadline, whoever is connected."""
    async with serving() as server:
        _, writer = await asyncio.open_connection("127.0.0.1", server.health_port)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
        await writer.drain()
        async with asyncio.timeout(20):
            await server.stop()
        writer.close()
