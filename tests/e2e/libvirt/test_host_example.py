"""The example of a host, run: reached over TLS, with every pool, network and way that it names."""

import base64
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import libvirt
import pytest
import yaml

from api import Api
from e2e.conftest import Stage
from e2e.test_moves import novacron
from fleet import daemon_of
from inside_guest import agent_answers, inside
from libvirt_daemon import add_pool
from machines import condition, virtual_machine
from novacron.cli.kinds import OPERATOR_NAMESPACE
from novacron.localcluster.hypervisor import Fleet
from open_vswitch import OpenVswitch, open_vswitch
from operators import RunningOperator, eventually
from rights import ROOT

Object = dict[str, Any]

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not ROOT, reason="hosts of their own need root"),
]
EXAMPLE = Path(__file__).parents[3] / "examples/03-hosts.yaml"
SMALL = {"cpu": 1, "memory": "512Mi", "disk": "256Mi"}
VOLUMES = [
    {"name": "quick", "size": "32Mi", "storageClass": "fast-ssd", "reclaimPolicy": "Delete"},
    {"name": "common", "size": "32Mi", "storageClass": "nfs", "reclaimPolicy": "Delete"},
]
NETWORKS = [
    {"name": "production", "ipv4": {"method": "static", "address": "10.0.3.10/24"}},
    {"name": "storage", "ipv4": {"method": "static", "address": "10.0.4.10/24"}},
]


@pytest.fixture(scope="module")
def switch(fleet: Fleet) -> Iterator[OpenVswitch]:
    """Give the second host of a fleet what the example says rack1 has, and return its switch."""
    host = fleet.hosts[1]
    assert host.namespace
    with tempfile.TemporaryDirectory(prefix="novacron-rack-") as directory:
        root = Path(directory)
        root.chmod(0o755)  # guests are another user's
        with open_vswitch(host.namespace, root / "ovs") as switch:
            switch.show_client(daemon_of(host).pid, root / "bin")
            switch.add_bridge("ovs-storage")
            for command in (
                "ip link add br-prod type bridge",
                "ip addr add 10.0.3.1/24 dev br-prod",
                "ip link set br-prod up",
            ):
                subprocess.run(
                    ["ip", "netns", "exec", host.namespace, *command.split()], check=True
                )
            connection = libvirt.open(host.uri)
            add_pool(connection, "fast", root / "fast")
            connection.close()
            yield switch


@pytest.fixture
def scene(
    libvirt_operator: RunningOperator, api: Api, fleet: Fleet, switch: OpenVswitch
) -> Iterator[Stage]:
    """An operator with the Secret that the example asks for, and the host ready for it."""
    del switch
    pair, authority = fleet.caller(), fleet.authority.pair
    files = {"ca.crt": authority.certificate, "tls.crt": pair.certificate, "tls.key": pair.key}
    data = {name: base64.b64encode(path.read_bytes()).decode() for name, path in files.items()}
    secrets = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/secrets"
    api.call("POST", secrets, {"metadata": {"name": "rack1"}, "data": data})
    stage = Stage(api, libvirt_operator, libvirt_operator.namespaces[0], [])
    yield stage
    stage.clear()
    api.call("DELETE", f"{secrets}/rack1")


def declare(scene: Stage, fleet: Fleet) -> str:
    """Declare the host as it is printed, but for its addresses, which are those of a fleet."""
    body: Object = yaml.safe_load(EXAMPLE.read_text())
    body["spec"]["endpoint"] = fleet.tls_uri(2)
    body["spec"]["libvirt"]["migration"]["uri"] = fleet.peer_uri(2)
    name: str = body["metadata"]["name"]
    scene.hosts.append(name)
    scene.api.create(body)
    scene.until_host(name, lambda obj: condition(obj, "Ready").get("status") == "True")
    return name


def another(scene: Stage, fleet: Fleet) -> str:
    """Declare the other host of the fleet, which can send machines to the first."""
    migration = {"uri": fleet.peer_uri(1), "tls": True}
    settings = {"network": fleet.hosts[0].network, "migration": migration}
    endpoint = fleet.hosts[0].uri
    return scene.add_host(driver="libvirt", simulation=None, endpoint=endpoint, libvirt=settings)


@pytest.mark.timeout(600)
def test_the_example_is_a_host_with_all_that_it_names(
    scene: Stage, fleet: Fleet, switch: OpenVswitch
) -> None:
    """Machines find it by its labels, its pools by their classes, its networks by their names."""
    rack = declare(scene, fleet)
    line = novacron(scene, "host", "list", namespaced=False).stdout.splitlines()[1].split()
    assert line[:3] == [rack, "libvirt", "Ready"]
    selector = {"node.novacron.io/type": "compute", "topology.kubernetes.io/zone": "a"}
    wishes: Object = {"nodeSelector": selector, "volumes": VOLUMES, "networks": NETWORKS}
    scene.api.create(virtual_machine("resident", scene.namespace, **SMALL, **wishes))
    obj = scene.until_running("resident")
    assert obj["status"]["nodeName"] == rack
    connection = libvirt.open(fleet.hosts[1].uri)
    try:
        domain = connection.lookupByUUIDString(obj["metadata"]["uid"])
        eventually(lambda: agent_answers(domain), lambda: "its agent answers")
        eventually(
            lambda: inside(domain, "ping -c 1 -W 1 10.0.3.1 >/dev/null && echo yes") == "yes",
            lambda: inside(domain, "ip addr"),
        )
        for pool in ("fast", "shared"):
            connection.storagePoolLookupByName(pool).refresh()
            kept = connection.storagePoolLookupByName(pool).listVolumes()
            assert len([each for each in kept if each.startswith("volume-")]) == 1, (pool, kept)
    finally:
        connection.close()
    (port,) = switch.vsctl("list-ports", "ovs-storage").split()
    assert switch.vsctl("get", "port", port, "tag").strip() == "12"


@pytest.mark.timeout(600)
def test_machines_come_to_the_example_on_the_way_that_it_names_and_leave_it_when_it_is_drained(
    scene: Stage, fleet: Fleet
) -> None:
    """By the commands that stand above it, encrypted as it says."""
    rack, other = declare(scene, fleet), another(scene, fleet)
    scene.close(rack)
    body = virtual_machine("guest", scene.namespace, **SMALL)
    body["spec"]["migrationPolicy"] = {"encrypted": True}
    scene.api.create(body)
    assert scene.until_running("guest")["status"]["nodeName"] == other
    novacron(scene, "host", "uncordon", rack, namespaced=False)
    moved = novacron(scene, "vm", "migrate", "guest", "--to", rack, "--wait")
    assert f"moved to {rack}" in moved.stdout
    novacron(scene, "host", "drain", rack, "--wait", namespaced=False)
    assert scene.until_running("guest")["status"]["nodeName"] == other
    novacron(scene, "host", "uncordon", rack, namespaced=False)
    spec = (scene.api.host(rack) or {})["spec"]
    assert "drain" not in spec
    assert not spec["unschedulable"]
