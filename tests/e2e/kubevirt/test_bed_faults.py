"""Nodes that die, and a bed that is stopped and started: each on a bed of its own."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubevirt_bed import HOLD, KubeVirtBed, new_bed, stop_bed
from local_cluster import processes_under
from novacron.localcluster.kubevirt.names import NODES
from novacron.workplace.files import write_private

pytestmark = pytest.mark.full

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeVirtBed]:
    """A bed that may be broken."""
    directory: Path = tmp_path_factory.mktemp("kubevirt")
    own = new_bed(directory)
    try:
        yield own
    finally:
        stop_bed(own)
    assert processes_under(directory) == []


def _is_ready(bed: KubeVirtBed, node: str) -> bool:
    found = bed.get("nodes", node, "")
    conditions = found["status"]["conditions"] if found else []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def test_a_guest_on_a_dead_node_starts_elsewhere_once_the_node_is_fenced(bed: KubeVirtBed) -> None:
    """Not before: until somebody says so, nobody knows that it does not run."""
    node = bed.started("survivor", "survivor-root")["status"]["nodeName"]
    bed.annotate("nodes", node, HOLD, "dead", "")
    bed.wait("the node lives", lambda: not _is_ready(bed, node))
    ready = lambda: bed.condition("survivor", "Ready")["status"]  # noqa: E731
    bed.wait("it is said to be well", lambda: ready() == "False")
    assert bed.instance("survivor")["status"]["nodeName"] == node
    bed.plane.kubectl("taint", "node", node, OUT_OF_SERVICE)

    def moved() -> bool:
        found = bed.get("virtualmachineinstances", "survivor")
        where = found["status"].get("nodeName") if found else None
        return where not in (None, node) and found["status"]["phase"] == "Running"

    bed.wait("it did not start elsewhere", moved)
    bed.annotate("nodes", node, HOLD, None, "")
    bed.plane.kubectl("taint", "node", node, f"{OUT_OF_SERVICE.partition('=')[0]}-")
    bed.wait("the node did not come back", lambda: _is_ready(bed, node))


def test_all_is_still_there_after_a_restart(bed: KubeVirtBed) -> None:
    before = bed.started("lasting", "lasting-root")["metadata"]["uid"]
    stopped = [*bed.kubevirt.stop(), *bed.plane.stop()]
    assert {"virt-api", "virt-controller", "kubevirt-nodes"} <= set(stopped)
    bed.plane.start()
    assert len(bed.kubevirt.start()) == 3
    assert bed.instance("lasting")["metadata"]["uid"] == before
    bed.ask("lasting", "stop")
    bed.wait("it was not stopped", lambda: bed.printable("lasting") == "Stopped")


def test_a_second_start_mends_what_is_broken_and_touches_nothing_else(bed: KubeVirtBed) -> None:
    running = bed.plane.running("virt-api")
    bed.plane.kill("virt-controller")
    bed.plane.kubectl("delete", "validatingwebhookconfiguration", "virt-api-validator")
    assert bed.kubevirt.start() == ["virt-controller"]
    assert bed.plane.running("virt-api") == running
    bed.plane.kubectl("get", "validatingwebhookconfiguration", "virt-api-validator")
    bed.started("mended")


def test_a_stand_in_that_never_had_a_port_is_started_anew(bed: KubeVirtBed) -> None:
    """An older version of it listened nowhere, and still runs when a newer one is brought up."""
    before = bed.plane.running(NODES)
    ports = bed.plane.ports.read()
    del ports[NODES]
    write_private(bed.plane.ports.path, json.dumps(ports))
    started = bed.kubevirt.start()
    assert NODES in started
    assert "virt-api" in started, "it is told where the nodes answer"
    assert bed.plane.running(NODES) not in (None, before)
    bed.started("reached")
    bed.ask_instance("reached", "pause")
