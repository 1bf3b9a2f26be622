"""Agents die, machines stop, people delete things: no process is doubled, lost or left behind."""

import ctypes
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest

from api import Api
from control_plane import discard, throw_away
from local_node import (
    IMAGE,
    PATIENT,
    NodeCluster,
    container,
    is_ready,
    processes_with,
    sleeper,
    traces_of,
)
from novacron.localcluster.components import COMPONENTS
from novacron.localcluster.controlplane import ControlPlane
from novacron.localcluster.node.registration import NODES
from operators import eventually

PR_CAPBSET_DROP = 24
CAP_NET_ADMIN, CAP_SYS_ADMIN = 12, 21


def _deployment(marker, replicas):
    """Return a Deployment whose containers carry a mark by which they can be counted."""
    labels = {"app": marker}
    containers = [sleeper(args=[marker])]
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": containers, "terminationGracePeriodSeconds": 1},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": marker}, "spec": spec}


def _ready(node):
    found = node.api.call("GET", NODES.path(None, "novacron-local"))["status"]["conditions"]
    return next(each for each in found if each["type"] == "Ready")


def _restarts(pod):
    return pod["status"]["containerStatuses"][0]["restartCount"]


def test_a_new_agent_takes_over_what_runs(node):
    """Same process, same address, no restart; and it can be reached as before."""
    marker = f"adopted-{uuid4().hex[:8]}"
    listener = "import socket; listener = socket.create_server(('', 8080))\n"
    name = node.pod(container(listener + PATIENT, args=[marker]))
    before = node.until_ready(name)
    node.until_said(name, "here")
    start = node.start_of(name)
    node.kill_agent()
    assert start.process.alive()
    node.start_agent()
    after = node.until_ready(name)
    assert node.start_of(name) == start
    assert len(processes_with(marker)) == 1
    assert _restarts(after) == 0
    assert after["status"]["podIP"] == before["status"]["podIP"]
    socket.create_connection((after["status"]["podIP"], 8080), timeout=5).close()
    node.delete(name)
    node.until_gone(name)
    assert processes_with(marker) == []


def test_a_killed_agent_comes_back_by_itself(node):
    """Its supervisor sees to that; nobody has to type anything."""
    name = node.pod(sleeper())
    node.until_ready(name)
    start = node.start_of(name)
    agent = node.agent()
    agent.signal(signal.SIGKILL)
    eventually(lambda: not agent.alive(), lambda: "the agent is dead")
    assert node.agent() != agent
    late = node.pod(sleeper())
    node.until_ready(late)
    assert node.start_of(name) == start


def test_a_ready_pod_stays_ready_when_the_agent_changes(node):
    """Its Service must not lose it because we update ourselves."""
    probe = {"exec": {"command": ["true"]}, "periodSeconds": 30, "initialDelaySeconds": 3}
    name = node.pod(sleeper(readinessProbe=probe))
    condition = next(
        each for each in node.until_ready(name)["status"]["conditions"] if each["type"] == "Ready"
    )
    node.kill_agent()
    node.start_agent()
    time.sleep(1)
    assert condition in node.get(name)["status"]["conditions"]


def test_what_ended_while_nobody_looked_is_started_again(node):
    """The keeper wrote down how it ended; the new agent reads it."""
    script = PATIENT.replace("sys.exit(0)", "sys.exit(9)")
    name = node.pod(container(script))
    node.until_said(name, "here")
    start = node.start_of(name)
    node.kill_agent()
    start.process.signal(signal.SIGTERM)
    eventually(lambda: not start.keeper.alive(), lambda: "it ended")
    node.start_agent()
    pod = node.until(name, lambda pod: _restarts(pod) == 1 and is_ready(pod))
    assert pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 9


def test_a_pod_deleted_while_nobody_looked_is_ended(node):
    """Also when the API server has forgotten it altogether."""
    gone, asked = node.pod(sleeper()), node.pod(sleeper())
    starts = []
    for name in (gone, asked):
        node.until_ready(name)
        starts.append(node.start_of(name))
    node.kill_agent()
    node.delete(gone, grace=0)
    node.delete(asked)
    node.start_agent()
    node.until_gone(asked)
    for start in starts:
        eventually(lambda start=start: not start.keeper.alive(), lambda: "it ended")


def test_a_pod_deleted_while_it_starts_leaves_no_process(node):
    """At whatever point of its start it is."""
    marker = f"hasty-{uuid4().hex[:8]}"
    for step in range(12):
        name = node.pod(sleeper(args=[marker]))
        node.until(name, lambda pod: pod["spec"].get("nodeName"))
        time.sleep(step * 0.02)
        node.delete(name, grace=0)
    eventually(lambda: processes_with(marker) == [], lambda: str(processes_with(marker)))
    time.sleep(0.5)
    assert processes_with(marker) == []


def test_a_killed_keeper_takes_its_container_along(node):
    """And the container is started again: nothing runs that nobody keeps."""
    name = node.pod(sleeper())
    node.until_ready(name)
    start = node.start_of(name)
    start.keeper.signal(signal.SIGKILL)
    eventually(lambda: not start.process.alive(), lambda: "the container ended too")
    pod = node.until(name, lambda pod: _restarts(pod) == 1 and is_ready(pod))
    assert pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 137


def test_an_agent_killed_at_any_moment_doubles_nothing(node):
    """Killed again and again while pods come and go; at the end each has one process."""
    marker = f"many-{uuid4().hex[:8]}"
    node.create("deployments", _deployment(marker, 0))
    chance = random.Random(7)
    for round_number in range(6):
        node.patch(marker, {"spec": {"replicas": 2 if round_number % 2 else 5}}, "deployments")
        time.sleep(chance.uniform(0.05, 0.4))
        node.kill_agent()
        node.start_agent()
    node.patch(marker, {"spec": {"replicas": 4}}, "deployments")
    node.until(
        marker,
        lambda found: (
            found["status"].get("readyReplicas") == 4 and found["status"]["replicas"] == 4
        ),
        "deployments",
        seconds=120,
    )
    eventually(lambda: len(processes_with(marker)) == 4, lambda: str(processes_with(marker)))
    pods = node.api.call("GET", f"/api/v1/namespaces/{node.namespace}/pods")["items"]
    addresses = [pod["status"]["podIP"] for pod in pods]
    assert len(set(addresses)) == len(addresses)


@pytest.mark.full
def test_a_dead_node_is_noticed_and_comes_back(node):
    """The controller manager decides by our heartbeat."""
    node.kill_agent()
    try:
        eventually(lambda: _ready(node)["status"] == "Unknown", lambda: str(_ready(node)))
    finally:
        node.start_agent()
    eventually(lambda: _ready(node)["status"] == "True", lambda: str(_ready(node)))
    name = node.pod(sleeper())
    node.until_ready(name)


@pytest.fixture
def own(tmp_path, kubernetes_binaries, node_plane):
    """A cluster with a node that belongs to this test alone."""
    assert node_plane
    plane = throw_away(tmp_path / "own", kubernetes_binaries, COMPONENTS)
    yield plane
    discard(plane)


@contextmanager
def _cluster(plane: ControlPlane) -> Iterator[NodeCluster]:
    """A namespace of a cluster that runs already."""
    api = Api(plane.kubeconfig)
    yield NodeCluster(plane, api).begin()
    api.close()


@pytest.mark.full
def test_a_stop_leaves_nothing_and_a_start_brings_everything_back(own):
    """Pods that ran run again; what was never to be restarted has failed."""
    own.start()
    with _cluster(own) as node:
        marker = f"stopped-{uuid4().hex[:8]}"
        kept = node.pod(sleeper(args=[marker]), name="kept")
        once = node.pod(sleeper(args=[marker]), name="once", restartPolicy="Never")
        for name in (kept, once):
            node.until_said(name, "here")
        assert own.stop()[0] == "node"
        assert processes_with(marker) == []
        assert traces_of(own) == []
        node.api.close()  # whoever it was connected to is no more
        own.start()
        pod = node.until(kept, lambda pod: _restarts(pod) == 1 and is_ready(pod))
        assert pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 0
        assert node.until_phase(once, "Failed")["status"]["reason"] == "NodeShutdown"
        # And once more as after a power cut: everything dies at once, and nobody says goodbye.
        start = node.start_of(kept)
        for name in COMPONENTS:
            own.kill(name)
        assert start.process.alive()
        own.stop()
        assert processes_with(marker) == []
        assert traces_of(own) == []


@pytest.mark.full
def test_a_changed_agent_is_started_anew_with_its_pods(own, monkeypatch):
    """Pods run our own code: when that is another, they must be too."""
    own.start()
    with _cluster(own) as node:
        name = node.pod(sleeper())
        node.until_said(name, "here")
        monkeypatch.setenv("NOVACRON_IMAGE", "novacron/novacron")
        assert own.start() == []
        monkeypatch.setenv("NOVACRON_IMAGE", "someone/else")
        assert own.start() == ["node"]
        pod = node.until(
            name,
            lambda pod: (
                pod["status"]["containerStatuses"][0]["state"].get("waiting", {}).get("reason")
                == "NotOurImage"
            ),
        )
        assert (
            "someone/else" in pod["status"]["containerStatuses"][0]["state"]["waiting"]["message"]
        )
        assert pod["spec"]["containers"][0]["image"] == IMAGE


@pytest.mark.full
def test_without_the_powers_of_root_the_node_says_so(own):
    """The cluster works without it; pods wait, and the node tells what to do."""
    script = (
        "import ctypes, sys\n"
        "libc = ctypes.CDLL(None)\n"
        f"libc.prctl({PR_CAPBSET_DROP}, {CAP_SYS_ADMIN}, 0, 0, 0)\n"
        f"libc.prctl({PR_CAPBSET_DROP}, {CAP_NET_ADMIN}, 0, 0, 0)\n"
        "import os\n"
        "os.execv(sys.executable, [sys.executable, '-c', sys.argv[1], *sys.argv[2:]])"
    )
    start = (
        "import sys\n"
        "from pathlib import Path\n"
        "from control_plane import throw_away\n"
        "from novacron.localcluster.components import COMPONENTS\n"
        "throw_away(Path(sys.argv[1]), Path(sys.argv[2]), COMPONENTS).start()"
    )
    assert ctypes.CDLL(None).prctl(23, CAP_SYS_ADMIN, 0, 0, 0) == 1
    subprocess.run(
        [sys.executable, "-c", script, start, str(own.directory), str(own.binaries)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
        timeout=120,
    )
    with _cluster(own) as node:
        ready = _ready(node)
        assert (ready["status"], ready["reason"]) == ("False", "CannotRunPods")
        assert "run `novacron up` as root" in ready["message"]
        name = node.pod(sleeper())
        node.until_event(name, "FailedScheduling")
        assert traces_of(own) == []
