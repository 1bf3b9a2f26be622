"""Volumes that were kept in a place that two real hosts see: told of once, and deleted once."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from api import Api
from e2e.libvirt.moving import FleetStage, fleet_stage
from machines import Object
from novacron.localcluster.hypervisor import Fleet
from operators import RunningOperator, eventually
from rights import ROOT

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not ROOT, reason="hosts of their own need root"),
]

NFS = {"name": "nfs", "pool": "shared", "shared": True}
DATA = {"name": "data", "size": "32Mi", "storageClass": "nfs"}


@pytest.fixture
def stage(libvirt_operator: RunningOperator, api: Api, fleet: Fleet) -> Iterator[FleetStage]:
    """Two hosts with disks of their own and one place for volumes."""
    with fleet_stage(libvirt_operator, api, fleet, "novacron", NFS) as found:
        yield found


def told(stage: FleetStage) -> list[list[str]]:
    """Return which volumes each host says are kept."""
    hosts = [stage.scene.api.host(name) or {} for name in stage.hosts]
    return [[each["id"] for each in host["status"].get("keptVolumes") or ()] for host in hosts]


def look(stage: FleetStage, times: int) -> None:
    """Have each host asked what it keeps, as often as that."""
    for number in range(times):
        for name in stage.hosts:
            label = {"spec": {"labels": {"looked": str(number)}}}
            seen = stage.scene.api.patch_host(name, label)["metadata"]["generation"]

            def asked(obj: Object, seen: int = seen) -> bool:
                found: int = obj["status"]["observedGeneration"]
                return found >= seen

            stage.scene.until_host(name, asked)


def typed(stage: FleetStage, *words: str) -> str:
    """Type a command and return what it says."""
    done = subprocess.run(
        [sys.executable, "-m", "novacron.app.entry", *words, "-n", stage.scene.namespace],
        env={**os.environ, "KUBECONFIG": str(stage.scene.operator.plane.kubeconfig)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_a_kept_volume_that_two_hosts_see_is_told_of_once(stage: FleetStage) -> None:
    """And not at all while a machine has it, whichever host that is on."""
    obj = stage.run("owner", volumes=[DATA])
    (volume,) = obj["status"]["volumes"]
    look(stage, 2)
    assert told(stage) == [[], []], "the other host sees it too, and knows no machine that has it"
    listed = typed(stage, "volume", "list")
    assert listed.count(volume["id"]) == 1
    assert "Kept" not in listed

    stage.scene.api.delete_machine(stage.scene.namespace, "owner")
    stage.scene.until_gone("owner")
    look(stage, 2)
    eventually(
        lambda: sorted(told(stage)) == [[], [volume["id"]]], lambda: f"told once: {told(stage)}"
    )
    (line,) = typed(stage, "volume", "list").splitlines()[1:]
    assert line.split()[:3] == [volume["id"], "32Mi", "nfs"]
    assert "Kept" in line

    typed(stage, "volume", "delete", volume["id"], "--yes")
    look(stage, 1)
    eventually(lambda: told(stage) == [[], []], lambda: f"told no more: {told(stage)}")
    assert "no volumes" in typed(stage, "volume", "list").lower() or not typed(
        stage, "volume", "list"
    )
