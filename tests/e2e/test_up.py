"""`novacron up` sets up, repairs and confirms; `down` and `purge` leave nothing behind."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from local_cluster import DEADLINE_SECONDS, NOVACRON, LocalCluster, processes_under
from novacron.localcluster.identity import Identity
from novacron.workplace.lock import holding

COMPONENTS = {
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "node",
    "operator",
}
NOBODY = 65534
SIMULATED = ("--provider", "simulation")


def _running(local: LocalCluster, name: str = "hello") -> bool:
    return local.json("vm", "get", name)["status"]["phase"] == "Running"


def _tail(local: LocalCluster) -> str:
    return "\n".join((local.home / "operator/operator.log").read_text().splitlines()[-40:])


def test_a_first_machine_runs(local_cluster):
    """One command from nothing to this."""
    assert _running(local_cluster)
    assert local_cluster.pids().keys() == COMPONENTS


def test_a_second_up_changes_nothing_and_says_what_to_type(local_cluster):
    """It is what people type when they are not sure."""
    pids, versions = local_cluster.pids(), local_cluster.versions()
    said = local_cluster.ok("up")
    assert "already running" in said
    assert "export KUBECONFIG=$(" in said
    assert "vm describe hello" in said
    assert local_cluster.pids() == pids
    assert local_cluster.versions() == versions


def test_what_runs_the_machines_stays_what_it_was(local_cluster):
    """A machine on a host that turned into another one would be lost."""
    said = local_cluster.fails("up", "--provider", "libvirt")
    assert "this cluster was set up with --provider simulation" in said
    assert local_cluster.pids().keys() == COMPONENTS


def test_what_the_user_stopped_or_deleted_stays_so(local_cluster):
    """The first machine is a gift, not something that comes back."""
    local_cluster.ok("vm", "stop", "hello", "--wait")
    local_cluster.ok("up")
    assert local_cluster.json("vm", "get", "hello")["status"]["phase"] == "Stopped"
    local_cluster.ok("vm", "start", "hello", "--wait")


def test_a_killed_operator_comes_back_by_itself(local_cluster):
    """Losing a lease ends the process on purpose; somebody has to start it again."""
    supervisor = local_cluster.pids()["operator"]
    children = subprocess.run(
        ["pgrep", "-P", str(supervisor)], capture_output=True, text=True, check=True
    )
    os.kill(int(children.stdout), signal.SIGKILL)
    # Until it is back its webhook refuses changes: better none than unchecked ones.
    end = time.monotonic() + DEADLINE_SECONDS
    while local_cluster.call("status").returncode:
        assert time.monotonic() < end, _tail(local_cluster)
    created = local_cluster.call(
        "vm", "create", "late", "--image", "builtin://tiny", "--wait", "--timeout", "90"
    )
    assert created.returncode == 0, created.stderr + _tail(local_cluster)
    local_cluster.ok("vm", "delete", "late", "--wait")
    assert local_cluster.pids()["operator"] == supervisor


@pytest.mark.full
def test_everything_killed_is_repaired(local_cluster):
    """A power cut, without the reboot."""
    for pid in local_cluster.pids().values():
        os.kill(pid, signal.SIGKILL)
    assert local_cluster.call("status").returncode == 1
    assert "The cluster is up" in local_cluster.ok("up")
    assert local_cluster.pids().keys() == COMPONENTS
    assert _running(local_cluster)


@pytest.mark.full
def test_a_reboot_is_repaired_and_strangers_are_left_alone(local_cluster):
    """The process ids of the last boot belong to others now."""
    local_cluster.ok("down")
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        recorded = {"pid": stranger.pid, "started_ticks": 1, "boot": "the last", "fingerprint": ""}
        for place in ("cluster/run/etcd", "cluster/run/kube-apiserver", "operator/operator"):
            (local_cluster.home / f"{place}.pid.json").write_text(json.dumps(recorded))
        local_cluster.ok("up")
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()
    assert _running(local_cluster)


@pytest.mark.parametrize(
    "place",
    [
        pytest.param("cluster/ports.json", marks=pytest.mark.full),
        "operator/ports.json",
        "cluster/run/kube-scheduler.pid.json",
        "cluster/kubeconfig/admin.kubeconfig",
        "cluster/pki/admin.key",
    ],
)
def test_half_written_state_is_repaired(local_cluster, place):
    """Whichever file a crash tore, the user types the same command."""
    (local_cluster.home / place).write_text('{"torn')
    local_cluster.ok("up")
    assert local_cluster.pids().keys() == COMPONENTS
    assert _running(local_cluster)


def test_down_stops_everything_and_keeps_the_data(local_cluster):
    """Nothing runs in between, and all is there again afterwards."""
    uid = local_cluster.json("vm", "get", "hello")["metadata"]["uid"]
    said = local_cluster.ok("down")
    assert all(name in said for name in COMPONENTS)
    assert processes_under(local_cluster.home) == []
    assert "novacron up" in local_cluster.fails("vm", "list")
    assert local_cluster.ok("down") == "nothing was running\n"
    local_cluster.ok("up")
    assert local_cluster.json("vm", "get", "hello")["metadata"]["uid"] == uid


def test_a_taken_port_is_no_obstacle(local_cluster):
    """Somebody took the API server's port while the cluster was down."""
    local_cluster.ok("down")
    ports = json.loads((local_cluster.home / "cluster/ports.json").read_text())
    with socket.create_server(("127.0.0.1", ports["kube-apiserver"])):
        local_cluster.ok("up")
        assert _running(local_cluster)


def test_two_at_once_are_one_and_a_sentence(local_cluster):
    """The second is told who is at work, and changes nothing."""
    with holding(local_cluster.home / "lock", "novacron up"):
        for command in (("up",), ("down",), ("purge", "--yes")):
            said = local_cluster.fails(*command)
            assert f"(`novacron up`, process {os.getpid()}) is at work" in said
            assert "\n" not in said
    assert local_cluster.pids().keys() == COMPONENTS


def test_purge_asks_first(local_cluster):
    """The data of a user is at stake: paths are named, and no means no."""
    done = local_cluster.call("purge", answer="n\n")
    assert done.returncode == 1
    assert str(local_cluster.home / "cluster") in done.stdout
    assert str(local_cluster.cache) not in done.stdout
    assert local_cluster.pids().keys() == COMPONENTS


@pytest.fixture
def another(tmp_path: Path, local_cluster: LocalCluster):
    """A second state directory, purged when the test ends."""
    other = LocalCluster(tmp_path / "another", local_cluster.cache)
    yield other
    other.call("purge", "--yes")
    assert processes_under(other.home) == []


def test_an_existing_cluster_can_be_used(another, new_control_plane):
    """No control plane of our own then; our kinds in theirs, our operator beside it."""
    theirs = new_control_plane()
    flags = ("--context", "novacron", "--kubeconfig", str(theirs.kubeconfig))
    said = another.ok("up", *SIMULATED, *flags)
    assert "The cluster is up" in said
    assert another.pids().keys() == {"operator"}
    assert another.ok("kubeconfig").strip() == str(theirs.kubeconfig)
    assert _running(another)
    removed = another.ok("purge", "--yes")
    assert "what was installed in the cluster of context novacron stays there" in removed
    assert "hello" in theirs.kubectl("get", "virtualmachines.novacron.io", "-A")


def test_a_context_that_does_not_exist_is_one_sentence(another, control_plane):
    """And it names those that do."""
    flags = ("--context", "prod", "--kubeconfig", str(control_plane.kubeconfig))
    said = another.fails("up", *SIMULATED, *flags)
    assert "has no context 'prod'; it has: novacron" in said
    assert not (another.home / "operator").exists()


def test_an_unknown_family_is_one_sentence(another, control_plane):
    """Found before anything is changed."""
    flags = ("--context", "novacron", "--kubeconfig", str(control_plane.kubeconfig))
    said = another.fails("up", *SIMULATED, *flags, "--families", "vmware")
    assert "no API family is called vmware" in said


def test_wrong_ready_made_programs_are_one_sentence(another, tmp_path):
    """Nothing is started and nothing is left."""
    (tmp_path / "bin").mkdir()
    said = another.fails("up", *SIMULATED, "--kubernetes-bin", str(tmp_path / "bin"))
    assert "lacks etcd, kube-apiserver" in said
    assert not (another.home / "cluster").exists()


def test_a_broken_go_cache_is_one_sentence(another, tmp_path):
    """With the command that mends it; and nothing half-built is left."""
    modules = tmp_path / "modules/cache/download/k8s.io/kubernetes/@v"
    modules.mkdir(parents=True)
    (modules / "v1.34.4.mod").write_text("module k8s.io/kubernetes\n")
    cache = tmp_path / "cache"
    environment = {
        **{k: v for k, v in another.environment.items() if k != "NOVACRON_KUBERNETES_BIN"},
        "NOVACRON_CACHE": str(cache),
        "GOMODCACHE": str(tmp_path / "modules"),
        "GOFLAGS": "-modcacherw",
        "GOPROXY": "off",
    }
    done = subprocess.run(
        [*NOVACRON, "up", *SIMULATED, "--yes"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_SECONDS,
    )
    assert done.returncode == 1
    assert "clean -modcache` and try again" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not list(cache.glob(".building-*"))
    assert not list(cache.glob("kubernetes-*"))
    assert not (another.home / "cluster").exists()


def test_a_place_this_user_may_not_use_is_one_sentence(tmp_path):
    """No root, and a state directory of somebody else's."""
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o500)
    # Modules are loaded before the rights are given up: an interpreter may lie in root's home.
    script = (
        "import os, novacron.cli.up, novacron.cli.cluster, novacron.cli.display\n"
        "import novacron.app.entry\n"
        f"if os.geteuid() == 0: os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n"
        "novacron.app.entry.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "up", *SIMULATED],
        env={**os.environ, "NOVACRON_HOME": str(theirs / "state")},
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_SECONDS,
    )
    assert done.returncode == 1
    assert "point NOVACRON_HOME at a directory of your own" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.full
def test_a_killed_up_is_continued_by_the_next(another):
    """Whatever it had started is found again or replaced, never doubled."""
    first = subprocess.Popen(
        [*NOVACRON, "up", *SIMULATED], env=another.environment, stdout=subprocess.PIPE, text=True
    )
    assert first.stdout is not None
    end = time.monotonic() + DEADLINE_SECONDS
    while "Kinds and roles" not in first.stdout.readline():
        assert time.monotonic() < end
    first.kill()
    first.wait()
    first.stdout.close()
    before = Identity.of(another.pids()["etcd"])
    another.ok("up", *SIMULATED)
    assert before.alive()
    assert another.pids().keys() == COMPONENTS
