"""Our operator as a Deployment on the node: replicas, leadership, webhooks, as in a cluster."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from api import Api, Refused
from local_node import IMAGE, NodeCluster, is_ready
from machines import condition, host, virtual_machine
from novacron.app.rights import OPERATOR
from novacron.localcluster.controlplane import ControlPlane
from open_directories import open_to_others
from operators import eventually, install

SYSTEM = "novacron-system"
REPLICAS = 3
RESTRICTED = {
    "readOnlyRootFilesystem": True,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}


def _deployment(directory: str) -> dict[str, Any]:
    """Return the operator as a chart would run it, with simulated hosts that all replicas see."""
    health = {"port": "health", "path": "/readyz"}
    container = {
        "name": "manager",
        "image": IMAGE,
        "args": ["--simulation-file=/var/lib/novacron/simulation.db"],
        "ports": [
            {"name": "webhook", "containerPort": 9443},
            {"name": "health", "containerPort": 8081},
        ],
        "readinessProbe": {"httpGet": health, "periodSeconds": 1},
        "livenessProbe": {"httpGet": {**health, "path": "/healthz"}},
        "securityContext": RESTRICTED,
        "volumeMounts": [
            {"name": "tmp", "mountPath": "/tmp"},
            {"name": "simulation", "mountPath": "/var/lib/novacron"},
        ],
    }
    pod = {
        "serviceAccountName": OPERATOR,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        "volumes": [
            {"name": "tmp", "emptyDir": {}},
            {"name": "simulation", "hostPath": {"path": directory, "type": "Directory"}},
        ],
    }
    labels = {"app": "operator"}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": REPLICAS, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": "operator"}, "spec": spec}


@pytest.fixture(scope="module")
def operator(
    node_plane: ControlPlane, node_api: Api, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NodeCluster]:
    """Three replicas of the operator that are ready, in their own namespace."""
    install(node_plane)
    node = NodeCluster(node_plane, node_api, SYSTEM)
    shared = tmp_path_factory.mktemp("simulation")
    shared.chmod(0o777)
    open_to_others(shared)
    node.create("deployments", _deployment(str(shared)))
    service = {"selector": {"app": "operator"}, "ports": [{"port": 443, "targetPort": "webhook"}]}
    node.create("services", {"metadata": {"name": "novacron-webhook"}, "spec": service})
    node.until(
        "operator", lambda found: found["status"].get("readyReplicas") == REPLICAS, "deployments"
    )
    yield node
    node.clear()


def _pods(node):
    return node.api.call("GET", f"/api/v1/namespaces/{SYSTEM}/pods")["items"]


def _leader(node):
    lease = json.loads(node.kubectl("get", "lease", "novacron-leader", "-o", "json").stdout)
    return lease["spec"].get("holderIdentity") or ""


def _restarts(pod):
    return pod["status"]["containerStatuses"][0]["restartCount"]


def _members(node):
    listed = node.kubectl("get", "leases", "-o", "name").stdout.split()
    return [name for name in listed if "member" in name]


def _until_running(api, name):
    api.create(virtual_machine(name, "default"))
    eventually(
        lambda: (api.machine("default", name).get("status") or {}).get("phase") == "Running",
        lambda: str(api.machine("default", name)),
    )


def _leading_pod(node):
    holder = _leader(node)
    return next((pod for pod in _pods(node) if holder.startswith(pod["metadata"]["name"])), None)


def test_three_replicas_run_and_one_leads(operator):
    """The same ports three times, each with an address, a token and a name of its own."""
    pods = _pods(operator)
    assert len({pod["status"]["podIP"] for pod in pods}) == REPLICAS
    assert all(is_ready(pod) for pod in pods)
    eventually(lambda: _leading_pod(operator) is not None, lambda: _leader(operator))


def test_a_machine_comes_to_run(operator):
    """With the operator in pods, as a user of the chart has it."""
    api = operator.api
    api.create(host("in-pod"))
    eventually(
        lambda: condition(api.host("in-pod"), "Ready").get("status") == "True",
        lambda: str(api.host("in-pod")),
    )
    _until_running(api, "inside")
    # The webhook is reached by its Service, though there is no kube-proxy.
    with pytest.raises(Refused, match="host in-pod cannot go: 1 machine is on it"):
        api.delete_host("in-pod")
    api.delete_machine("default", "inside")
    eventually(lambda: api.machine("default", "inside") is None, lambda: "the machine is gone")


def test_a_killed_leader_is_started_again_and_another_leads(operator):
    """kill -9 of the process itself: a restart in the status, a new holder of the lease."""
    eventually(lambda: _leading_pod(operator) is not None, lambda: _leader(operator))
    before, pod = _leader(operator), _leading_pod(operator)
    name = pod["metadata"]["name"]
    operator.start_of(name, "manager").process.signal(9)
    operator.until(
        name,
        lambda found: (
            found["status"]["containerStatuses"][0]["restartCount"] == 1 and is_ready(found)
        ),
    )
    eventually(lambda: _leader(operator) not in ("", before), lambda: _leader(operator))
    others = [each for each in _pods(operator) if each["metadata"]["name"] != name]
    assert not any(_restarts(each) for each in others)


@pytest.mark.full
def test_operators_do_not_notice_a_new_agent(operator):
    """Their way to the API server is away for a moment, for less than a lease lasts."""
    eventually(lambda: _leading_pod(operator) is not None, lambda: _leader(operator))
    before = {pod["metadata"]["name"]: _restarts(pod) for pod in _pods(operator)}
    leader = _leader(operator)
    operator.kill_agent()
    operator.start_agent()
    time.sleep(8)  # a process that cannot renew for 6 s ends itself
    assert {pod["metadata"]["name"]: _restarts(pod) for pod in _pods(operator)} == before
    assert _leader(operator) == leader


def test_replicas_go_when_they_are_not_wanted(operator):
    """In good order: they give their leases back."""
    living = {pod["metadata"]["name"] for pod in _pods(operator)}
    before = _members(operator)
    operator.patch("operator", {"spec": {"replicas": 0}}, "deployments")
    eventually(lambda: not _pods(operator), lambda: str(_pods(operator)))
    # One of a process that was killed may be left for people who look for what happened.
    assert len(before) >= len(living)
    assert len(_members(operator)) <= len(before) - len(living)
