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


@pytest.mark.parametrize(
    ("driver", "taints", "silent", "may_be_forgotten"),
    [
        ("simulation", [], True, False),
        ("simulation", FENCED, False, False),
        ("simulation", FENCED, True, True),
        ("of-tomorrow", [], True, False),
    ],
)
async def test_what_a_declared_host_has_may_be_forgotten_only_once_it_is_off(
    tmp_path: Path,
    driver: str,
    taints: list[dict[str, str]],
    *,
    silent: bool,
    may_be_forgotten: bool,
) -> None:
    """One that cannot be used for now is declared all the same, and guests run there."""
    simulated = SimulationDriver(tmp_path / "world.db", SimulatedHost("a", Resources(1, 1, 1)))
    pool, cache = DriverPool(HOST_KIND, {"simulation": lambda _: simulated}), Cache(HOSTS)
    pool.follow(cache)
    body = host("a", taints=taints, driver=driver)
    body["metadata"] |= {"uid": "a", "generation": 1, "resourceVersion": "1"}
    ready = {"type": "Ready", "status": str(not silent), "reason": "HostUnreachable"}
    since = {"lastTransitionTime": "2026-11-15T12:00:00Z"}
    obj = {**body, "status": {"conditions": [ready | since]}}
    cache.seen(obj)
    assert pool.is_written_off("a") is may_be_forgotten
    assert pool.is_declared("a")
    assert set(pool.unusable()) == ({"a"} if driver == "of-tomorrow" else set())
    cache.gone({**obj, "metadata": {**obj["metadata"], "resourceVersion": "2"}})
    assert pool.is_written_off("a"), "nobody declares it any more"
    assert not pool.is_declared("a")
    await pool.close()
