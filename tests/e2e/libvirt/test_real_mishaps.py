"""What befalls hosts and operators while real guests move, or stay where a host was lost."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import PIPE

import pytest

from e2e.libvirt.moving import SLOW, FleetStage
from fleet import kill_daemon
from machines import condition
from novacron.drivers.libvirt.domain import root_volume
from novacron.localcluster.hypervisor import Hypervisor
from operators import eventually
from rights import ROOT

pytestmark = pytest.mark.skipif(not ROOT, reason="hosts of their own need root")

# As the operator of these tests is told.
GRACE_SECONDS = 3


@pytest.mark.full
def test_a_host_that_takes_in_others_is_waited_for(shared: FleetStage) -> None:
    """Each machine that comes takes a port, of which libvirt has only so many."""
    obj = shared.run("later")
    before = shared.tick(obj, 0)
    with ports_in_use(shared.fleet.hosts[1]):
        shared.ask("later", migrate_to=shared.hosts[1])
        shared.scene.until(
            "later", lambda obj: "at a time" in condition(obj, "Moved").get("message", "")
        )
        assert shared.guests(obj) == [0]
    done = shared.moved("later")
    assert done["status"]["migration"]["result"] == "Succeeded", done["status"]["migration"]
    assert before < shared.tick(done, 1) < before + 60


@contextmanager
def ports_in_use(host: Hypervisor) -> Iterator[None]:
    """Have all ports taken on a host at which machines come in."""
    assert host.membership is not None
    ports = host.membership.ports
    program = f"""
import socket
taken = [socket.create_server(("", port)) for port in range({ports.start}, {ports.stop})]
print("taken", flush=True)
input()
"""
    command = ["ip", "netns", "exec", host.namespace or "", sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "taken\n"
        try:
            yield
        finally:
            holder.communicate("\n", 10)


@pytest.mark.full
@pytest.mark.parametrize("stage", ["shared", "novacron"], ids=["shared", "copied"], indirect=True)
def test_a_guest_that_moves_is_deleted(stage: FleetStage) -> None:
    """From both hosts, where a part of it is by then: of half a guest or half a disk nothing stays.

    Disks that both see go once, when neither has a guest on them any more.
    """
    volumes = [{"name": "data", "size": "32Mi", "reclaimPolicy": "Delete"}]
    obj = stage.run("doomed", policy=SLOW | {"bandwidth": "3Mi"}, volumes=volumes)
    stage.ask("doomed", migrate_to=stage.hosts[1])
    stage.under_way("doomed")
    for number in (0, 1):
        with stage.domain(obj, number) as domain:
            assert domain.isActive(), "it is on either host in part"
    stage.scene.api.delete_machine(stage.scene.namespace, "doomed")
    stage.scene.until_gone("doomed")
    assert stage.guests(obj) == []
    assert stage.left_behind() == []


@pytest.mark.full
def test_an_operator_that_is_killed_adopts_the_move(shared: FleetStage) -> None:
    """The hosts go on without it; the next one finds the move and writes down how it ended."""
    obj = shared.run("adopted", policy={"bandwidth": "160Mbps", "compression": False})
    before = shared.tick(obj, 0)
    shared.ask("adopted", migrate_to=shared.hosts[1])
    shared.under_way("adopted")
    shared.scene.operator.kill()
    shared.scene.operator.start()
    done = shared.moved("adopted")
    assert done["status"]["migration"]["result"] == "Succeeded", done["status"]["migration"]
    assert shared.guests(done) == [1]
    assert shared.tick(done, 1) > before


@pytest.mark.full
@pytest.mark.parametrize(("stage", "seen_by"), [("shared", 2), ("novacron", 1)], indirect=["stage"])
def test_the_target_dies_and_the_guest_goes_on(stage: FleetStage, seen_by: int) -> None:
    """Where it was, with a reason; what may be left is removed when the host is back.

    Of a disk that is copied, and that the other host does not see, that is the half which has come.
    """
    obj = stage.run("survivor", policy=SLOW)
    before = stage.tick(obj, 0)
    stage.ask("survivor", migrate_to=stage.hosts[1])
    stage.under_way("survivor")
    disk = root_volume(obj["metadata"]["uid"])
    assert stage.left_behind().count(disk) == 2
    stage.fleet.hosts[1].power_off()
    done = stage.moved("survivor")
    assert done["status"]["migration"]["result"] == "Failed"
    assert done["status"]["migration"]["reason"] == "TargetUnreachable"
    assert stage.guests(done) == [0]
    assert stage.tick(done, 0) > before
    stage.fleet.start()
    stage.scene.until("survivor", lambda obj: not obj["status"].get("leftoverHosts"))
    assert stage.left_behind().count(disk) == seen_by


@pytest.mark.full
def test_guests_of_a_lost_host_begin_anew_only_when_it_is_fenced(shared: FleetStage) -> None:
    """Until somebody says that it is off nobody can know, so nothing is started."""
    obj = shared.run("restarted")
    shared.tick(obj, 0)
    shared.fleet.hosts[0].power_off()
    shared.scene.until("restarted", lambda obj: condition(obj, "Ready")["status"] == "Unknown")
    time.sleep(3 * GRACE_SECONDS)
    assert shared.guests(obj) == []
    fence = [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]
    shared.scene.api.patch_host(shared.hosts[0], {"spec": {"taints": fence}})
    shared.scene.until("restarted", lambda obj: obj["status"]["nodeName"] == shared.hosts[1])
    done = shared.scene.until_running("restarted")
    assert shared.tick(done, 1) >= 1
    shared.fleet.start()
    shared.scene.api.patch_host(shared.hosts[0], {"spec": {"taints": None}})
    shared.scene.until("restarted", lambda obj: not obj["status"].get("leftoverHosts"))
    assert shared.guests(done) == [1]


@pytest.mark.full
def test_a_false_fence_never_gives_two_guests_one_disk(shared: FleetStage) -> None:
    """QEMU locks its images: the second guest does not start while the first one runs."""
    obj = shared.run("locked")
    shared.tick(obj, 0)
    kill_daemon(shared.fleet.hosts[0])  # its guest goes on
    fence = [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]
    shared.scene.api.patch_host(shared.hosts[0], {"spec": {"taints": fence}})
    shared.scene.until("locked", lambda obj: "lock" in condition(obj, "Powered").get("message", ""))
    assert shared.guests(obj) == []
    shared.fleet.start()
    shared.scene.api.patch_host(shared.hosts[0], {"spec": {"taints": None}})
    eventually(
        lambda: shared.guests(obj) == [1], lambda: f"one guest: {shared.scene.operator.log[-4000:]}"
    )
