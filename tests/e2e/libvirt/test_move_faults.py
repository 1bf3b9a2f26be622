"""Moves that hosts spoil: without power, and without room. One guest goes on, with a reason."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from e2e.libvirt.moving import SLOW, FleetStage
from fleet import daemon_of
from inside_guest import agent_answers, inside
from machines import condition
from novacron.localcluster.hypervisor import Hypervisor
from operators import eventually
from rights import ROOT

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not ROOT, reason="hosts of their own need root"),
]

FENCE = [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]
POOL = "/var/lib/libvirt/novacron"
# Ten times over it is enough for the machine; what the guest wrote is more than that.
ROOM_MIB, WRITTEN_MIB = 40, 60
DISK = "/dev/vda"
SUM = f"dd if={DISK} bs=1M count=4 skip=200 2>/dev/null | sha256sum"


def test_the_source_loses_its_power_amid_a_move_and_one_guest_begins_anew(
    stage: FleetStage,
) -> None:
    """Half of a guest that came so far is none; and nothing is started before it is fenced."""
    obj = stage.run("struck", policy=SLOW)
    stage.tick(obj, 0)
    stage.ask("struck", migrate_to=stage.hosts[1])
    stage.under_way("struck")
    stage.fleet.hosts[0].power_off()
    stage.scene.until("struck", lambda obj: condition(obj, "Ready")["status"] == "Unknown")
    assert stage.guests(obj) == []
    stage.scene.api.patch_host(stage.hosts[0], {"spec": {"taints": FENCE}})
    stage.scene.until("struck", lambda obj: obj["status"]["nodeName"] == stage.hosts[1])
    done = stage.scene.until_running("struck")
    assert done["status"]["migration"]["result"] == "Succeeded"
    assert done["status"]["migration"]["reason"] == "HostLost"
    assert stage.guests(obj) == [1]
    stage.tick(obj, 1)
    stage.fleet.start()
    stage.scene.api.patch_host(stage.hosts[0], {"spec": {"taints": None}})
    stage.scene.until("struck", lambda obj: not obj["status"].get("leftoverHosts"))
    assert stage.guests(obj) == [1]


@pytest.mark.parametrize("stage", ["novacron"], indirect=True)
def test_the_source_loses_its_power_amid_a_copy_and_no_half_of_a_disk_is_started(
    stage: FleetStage,
) -> None:
    """It waits for its host, though that is fenced: only there is all of its data."""
    obj = stage.run("halved", policy=SLOW)
    with stage.domain(obj, 0) as domain:
        eventually(lambda: agent_answers(domain), lambda: "its agent answers")
        inside(domain, f"dd if=/dev/urandom of={DISK} bs=1M count=4 seek=200 conv=fsync")
        data = inside(domain, SUM)
    stage.ask("halved", migrate_to=stage.hosts[1])
    stage.under_way("halved")
    stage.fleet.hosts[0].power_off()
    stage.scene.api.patch_host(stage.hosts[0], {"spec": {"taints": FENCE}})
    told = stage.scene.until(
        "halved",
        lambda obj: (obj["status"].get("migration") or {}).get("reason") == "DisksOutOfReach",
    )
    assert "its first disk, which came only in part" in told["status"]["migration"]["message"]
    assert told["status"]["nodeName"] == stage.hosts[0]
    assert stage.guests(obj) == []
    stage.fleet.start()
    stage.scene.api.patch_host(stage.hosts[0], {"spec": {"taints": None}})
    stage.scene.until("halved", lambda obj: not obj["status"].get("leftoverHosts"))
    stage.scene.until_running("halved")
    assert stage.guests(obj) == [0]
    with stage.domain(obj, 0) as domain:
        eventually(lambda: agent_answers(domain), lambda: "its agent answers")
        assert inside(domain, SUM) == data


@contextmanager
def little_room(host: Hypervisor) -> Iterator[None]:
    """Have a host's own pool in a place that is soon full."""
    within = ["nsenter", "-t", str(daemon_of(host).pid), "-m"]
    size = f"size={ROOM_MIB}m"
    subprocess.run([*within, "mount", "-t", "tmpfs", "-o", size, "tmpfs", POOL], check=True)
    try:
        yield
    finally:
        subprocess.run([*within, "umount", POOL], check=True)


@pytest.mark.parametrize("stage", ["novacron"], indirect=True)
def test_the_target_is_full_and_the_guest_goes_on_where_it_was(stage: FleetStage) -> None:
    """It turns out while disks are copied; nothing of them is left there."""
    obj = stage.run("bulky")
    with stage.domain(obj, 0) as domain:
        eventually(lambda: agent_answers(domain), lambda: "its agent answers")
        inside(domain, f"dd if=/dev/urandom of=/root/file bs=1M count={WRITTEN_MIB} conv=fsync")
    before = stage.tick(obj, 0)
    with little_room(stage.fleet.hosts[1]):
        stage.ask("bulky", migrate_to=stage.hosts[1])
        done = stage.moved("bulky")
        migration = done["status"]["migration"]
        assert (migration["result"], migration["reason"]) == ("Failed", "HostFull"), migration
        assert "No space left" in migration["message"]
        assert stage.tick(obj, 0) > before
        assert stage.guests(obj) == [0]
        stage.scene.until("bulky", lambda obj: not obj["status"].get("leftoverHosts"))
