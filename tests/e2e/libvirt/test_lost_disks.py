"""A host is lost with machines that have volumes: nothing of their data ever is."""

from collections.abc import Iterator

import libvirt
import pytest

from api import Api
from e2e.libvirt.moving import FleetStage, fleet_stage
from fleet import own_fleet
from inside_guest import agent_answers, inside
from machines import Object, condition
from novacron.localcluster.hypervisor import Fleet
from operators import RunningOperator, eventually
from rights import ROOT

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not ROOT, reason="hosts of their own need root"),
]

LOCAL = {"name": "local", "pool": "local"}
FENCE = [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]
DISK = "/dev/vdc"


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    """Two hosts that these tests break, each with a place that the other does not see."""
    with own_fleet() as hosts:
        for host in hosts.hosts:
            connection = libvirt.open(host.uri)
            pool = connection.storagePoolDefineXML(
                "<pool type='dir'><name>local</name>"
                "<target><path>/var/lib/libvirt/local</path></target></pool>"
            )
            pool.setAutostart(1)
            pool.create(libvirt.VIR_STORAGE_POOL_CREATE_WITH_BUILD)
            connection.close()
        yield hosts


@pytest.fixture
def stage(libvirt_operator: RunningOperator, api: Api, fleet: Fleet) -> Iterator[FleetStage]:
    """The two hosts with first disks in one place, and volumes there or in their own."""
    with fleet_stage(libvirt_operator, api, fleet, "shared", LOCAL) as found:
        yield found


def run_with_data(stage: FleetStage, name: str, **kind: str) -> tuple[Object, str]:
    """Have a guest run on the first host with something on its volume; return what that is."""
    obj = stage.run(
        name, volumes=[{"name": "data", "size": "32Mi", "reclaimPolicy": "Delete", **kind}]
    )
    with stage.domain(obj, 0) as domain:
        eventually(lambda: agent_answers(domain), lambda: "its agent answers")
        fill = f"dd if=/dev/urandom of={DISK} bs=1M count=4 conv=fsync"
        inside(domain, fill)
    return obj, written(stage, obj, 0)


def written(stage: FleetStage, obj: Object, number: int) -> str:
    """Return a word for what is on the volume of a guest."""
    with stage.domain(obj, number) as domain:
        eventually(lambda: agent_answers(domain), lambda: "its agent answers")
        return inside(domain, f"dd if={DISK} bs=1M count=4 2>/dev/null | sha256sum")


def fence(stage: FleetStage) -> None:
    """Switch the first host off and say so."""
    stage.fleet.hosts[0].power_off()
    stage.scene.api.patch_host(stage.hosts[0], {"spec": {"taints": FENCE}})


def test_a_machine_begins_anew_with_its_volumes_where_those_are_within_reach(
    stage: FleetStage,
) -> None:
    """And when the lost host is back nothing is taken from it that the machine has."""
    obj, data = run_with_data(stage, "whole")
    fence(stage)
    stage.scene.until("whole", lambda obj: obj["status"]["nodeName"] == stage.hosts[1])
    stage.scene.until_running("whole")
    assert written(stage, obj, 1) == data
    stage.fleet.start()
    stage.scene.api.patch_host(stage.hosts[0], {"spec": {"taints": None}})
    stage.scene.until("whole", lambda obj: not obj["status"].get("leftoverHosts"))
    assert stage.guests(obj) == [1]
    assert written(stage, obj, 1) == data


def test_a_machine_with_a_volume_on_the_lost_host_waits_for_it(stage: FleetStage) -> None:
    """Rather than begin with an empty one in its place, and have the other removed."""
    obj, data = run_with_data(stage, "waits", storageClass="local")
    fence(stage)
    told = stage.scene.until(
        "waits", lambda obj: (obj["status"].get("migration") or {}).get("result") == "Failed"
    )
    migration = told["status"]["migration"]
    assert migration["reason"] == "DisksOutOfReach"
    assert migration["message"] == f"host {stage.hosts[1]} cannot reach its volume data"
    event = stage.scene.until_event("waits", "MigrationFailed")
    assert "its volume data" in event["message"]
    assert told["status"]["nodeName"] == stage.hosts[0]
    stage.scene.until("waits", lambda obj: condition(obj, "Ready")["status"] == "Unknown")
    assert stage.guests(obj) == []
    stage.fleet.start()
    stage.scene.api.patch_host(stage.hosts[0], {"spec": {"taints": None}})
    stage.scene.until_running("waits")
    assert stage.guests(obj) == [0]
    assert written(stage, obj, 0) == data
