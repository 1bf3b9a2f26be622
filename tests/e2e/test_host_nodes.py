"""A Host that is also a Node of the cluster: the Node's marks count too."""

import json
from collections.abc import Iterator
from uuid import uuid4

import pytest

from e2e.conftest import Stage
from machines import condition, virtual_machine
from novacron.localcluster.controlplane import ControlPlane


@pytest.fixture
def node(cluster: ControlPlane) -> Iterator[str]:
    """A Node with a label."""
    name = f"node-{uuid4().hex[:8]}"
    labels = {"rack": name, "size": "by-node"}
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
    cluster.kubectl("create", "-f", "-", input=json.dumps(body))
    # A new Node is tainted until somebody finds it ready, and there is nobody here.
    cluster.kubectl("taint", "node", name, "node.kubernetes.io/not-ready-")
    yield name
    cluster.kubectl("delete", "node", name, "--ignore-not-found")


def machine(stage: Stage, name: str, **selector: str) -> None:
    """Create a machine that chooses its host by labels."""
    body = virtual_machine(name, stage.namespace)
    body["spec"]["template"]["spec"]["nodeSelector"] = selector
    stage.api.create(body)


def test_machines_choose_a_host_by_the_labels_of_its_node(stage: Stage, node: str) -> None:
    """Labels that administrators keep on Nodes need not be kept twice."""
    host = stage.add_host(nodeRef={"name": node})
    machine(stage, "chooser", rack=node)
    assert stage.until_running("chooser")["status"]["nodeName"] == host


def test_what_the_host_says_of_itself_counts_more(stage: Stage, node: str) -> None:
    """A host may differ from its node."""
    name = stage.add_host(nodeRef={"name": node}, labels={"size": "by-host"})
    machine(stage, "small", size="by-host")
    assert stage.until_running("small")["status"]["nodeName"] == name


def test_a_tainted_node_keeps_new_machines_away(
    stage: Stage, node: str, cluster: ControlPlane
) -> None:
    """Cordoning a Node is a taint as well, so kubectl cordon and drain are respected."""
    stage.add_host(nodeRef={"name": node})
    cluster.kubectl("taint", "node", node, "maintenance=soon:NoSchedule")
    stage.until_host(stage.hosts[0], lambda obj: bool(obj["status"].get("node", {}).get("taints")))
    machine(stage, "waiting", rack=node)
    obj = stage.until("waiting", lambda obj: bool(condition(obj, "Placed")))
    assert "maintenance=soon" in condition(obj, "Placed")["message"]
    cluster.kubectl("taint", "node", node, "maintenance-")
    stage.until_running("waiting")


def test_a_node_that_is_not_there_is_said_and_harms_nothing(
    stage: Stage, node: str, cluster: ControlPlane
) -> None:
    """The host answers all the same; only its node's marks are gone."""
    host = stage.add_host(nodeRef={"name": node})
    stage.until_host(host, lambda obj: "node" in obj["status"])
    cluster.kubectl("delete", "node", node)
    obj = stage.until_host(host, lambda obj: bool(condition(obj, "NodeFollowed")))
    assert condition(obj, "NodeFollowed")["reason"] == "NodeNotFound"
    assert condition(obj, "Ready")["status"] == "True"
    assert "node" not in obj["status"]
