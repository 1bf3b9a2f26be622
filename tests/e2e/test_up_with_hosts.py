"""`novacron up --hosts` makes several hosts of this machine, repairs them and takes them away."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from local_cluster import LocalCluster, processes_under
from machines import condition
from novacron.localcluster.hypervisor import Arrangement
from novacron.localcluster.hypervisor.places import Places
from novacron.localcluster.hypervisor.remains import processes_of
from novacron.workplace.home import Home
from rights import ROOT

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not ROOT, reason="an ordinary user's are in test_up_on_other_machines"),
]
DEADLINE_SECONDS = 120.0


@pytest.fixture
def local(
    tmp_path_factory: pytest.TempPathFactory, kubernetes_binaries: Path
) -> Iterator[LocalCluster]:
    """A cluster that nothing is left of in the end."""
    assert kubernetes_binaries
    cluster = LocalCluster(tmp_path_factory.mktemp("hosts") / "home", Home.default().cache)
    try:
        yield cluster
    finally:
        purged = cluster.call("purge", "--yes")
    assert purged.returncode == 0, purged.stderr
    assert processes_under(cluster.home) == []
    assert not cluster.home.exists()


def _until(claim: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + DEADLINE_SECONDS
    while not claim():
        assert time.monotonic() < end, what
        time.sleep(0.2)


def _ready(local: LocalCluster) -> dict[str, str]:
    """Return whether each host answers."""
    found = {}
    for host in local.json("host", "list")["items"]:
        conditions = host.get("status", {}).get("conditions", ())
        ready = [each["status"] for each in conditions if each["type"] == "Ready"]
        found[host["metadata"]["name"]] = ready[0] if ready else "Unknown"
    return found


def _hello(local: LocalCluster) -> tuple[str, str]:
    """Return phase and address of the first machine."""
    status = local.json("vm", "get", "hello").get("status", {})
    return status.get("phase", ""), (status.get("ipAddresses") or [""])[0]


def _movable(local: LocalCluster) -> tuple[str, str]:
    """Return what is said of whether the first machine could move."""
    said = condition(local.json("vm", "get", "hello"), "LiveMigratable")
    return said["status"], said["reason"]


def test_one_host_becomes_three_which_can_be_broken_and_mended(local: LocalCluster) -> None:
    """The first machine comes along; a host that is killed is back after the next up."""
    local.ok("up")
    assert _movable(local) == ("False", "NoOtherHost")
    said = local.ok("up", "--hosts", "3")
    assert "3 hypervisors" in said
    assert _ready(local) == {"local": "True", "local-2": "True", "local-3": "True"}
    _until(lambda: _hello(local)[0] == "Running" and _hello(local)[1] != "", "hello runs again")
    arrangement = Arrangement(local.home)
    segment = (local.home / "fleet/network.json").read_text().split('"')[3].rpartition(".")[0]
    assert _hello(local)[1].startswith(f"{segment}."), "it is in the network of the fleet"
    _until(lambda: _movable(local) == ("True", "MigrationCapable"), "it can go somewhere now")
    for name in ("hypervisor-2", "hypervisor-3"):
        os.kill(local.pids()[name], signal.SIGKILL)
    arrangement.hosts[2].power_off()
    assert "The cluster is up" in local.ok("up")
    _until(lambda: set(_ready(local).values()) == {"True"}, "all hosts are ready again")
    assert "already running" in local.ok("up")
    refused = local.fails("up", "--hosts", "2")
    assert refused.startswith("this cluster has 3 hosts")

    hosts = arrangement.hosts
    assert local.ok("down").startswith("stopped operator, hypervisor, ")
    for host in hosts:
        assert processes_of(Places(host.directory)) == []
        assert not Path("/run/netns", host.namespace or "").exists()
    mark = (hosts[0].namespace or "").split("-")[1]
    assert [link for link in Path("/sys/class/net").iterdir() if mark in link.name] == []
    assert local.ok("down") == "nothing was running\n"
