"""What is known of hosts by those who reach them."""

from pathlib import Path

import pytest

from machines import host
from novacron.app.registry import HOST_KIND
from novacron.controllers.drivers import DriverPool
from novacron.core.machine import Resources
from novacron.drivers.simulation import SimulatedHost, SimulationDriver
from novacron.runtime.cache import Cache
from novacron.runtime.resource import Resource

HOSTS = Resource("novacron.io", "v1alpha1", "hosts", "Host", namespaced=False)
FENCED = [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]


@pytest.mark.parametrize("fenced", [False, True])
async def test_a_host_is_off_only_when_it_is_fenced_and_written_down_as_silent(
    tmp_path: Path, *, fenced: bool
) -> None:
    """Whoever decides where its machines begin anew goes by the same, so nobody is ahead of him."""
    simulated = SimulationDriver(tmp_path / "world.db", SimulatedHost("a", Resources(1, 1, 1)))
    pool, cache = DriverPool(HOST_KIND, {"simulation": lambda _: simulated}), Cache(HOSTS)
    pool.follow(cache)
    body = host("a", taints=FENCED if fenced else [])
    for version, status in enumerate(("True", "False", "True"), 1):
        body["metadata"] |= {"uid": "a", "generation": 1, "resourceVersion": str(version)}
        ready = {"type": "Ready", "status": status, "reason": "HostUnreachable"}
        since = {"lastTransitionTime": "2026-11-15T12:00:00Z"}
        cache.seen(
            {**body, "metadata": dict(body["metadata"]), "status": {"conditions": [ready | since]}}
        )
        assert pool.is_fenced("a") is (fenced and status == "False")
    await pool.close()
