"""libvirtd of a host is killed amid a move, QEMU is not: one guest goes on, and it says why.

libvirt itself gives a move up when either daemon dies. Of what it had begun nothing is left once
both are back: no half of a copy, no second guest, and nothing that is in the next move's way.
"""

import os
import signal

import psutil
import pytest

from e2e.libvirt.moving import SLOW, FleetStage
from fleet import daemon_of, kill_daemon
from inside_guest import BOOT_ID, agent_answers, from_disk, inside
from machines import Object, condition
from operators import eventually
from rights import ROOT

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not ROOT, reason="hosts of their own need root"),
    pytest.mark.parametrize(
        "stage", ["shared", "novacron"], ids=["shared", "copied"], indirect=True
    ),
]

HERE, THERE = 0, 1
# With something of the image below its disk, which a copy of the disk has to have too.
WHO = f"{BOOT_ID}; {from_disk('/bin/busybox')} | sha256sum"
QUICK = {"spec": {"migrationPolicy": {"bandwidth": "100Mi", "compression": False}}}


def sent(stage: FleetStage, name: str) -> tuple[Object, str, list[str]]:
    """Have a guest be amid a move; return it, who it is, and what hosts had before."""
    obj = stage.run(name, policy=SLOW)
    same, had = who(stage, obj, HERE), sorted(stage.left_behind())
    stage.ask(name, migrate_to=stage.hosts[THERE])
    stage.under_way(name)
    assert sorted(stage.left_behind()) != had
    return obj, same, had


def who(stage: FleetStage, obj: Object, number: int) -> str:
    """Return which boot a guest is of, and what is on its disk."""
    with stage.domain(obj, number) as domain:
        eventually(lambda: agent_answers(domain), lambda: "its agent answers")
        return inside(domain, WHO)


def qemus(obj: Object) -> int:
    """Return how many QEMUs there are for a machine, known to a daemon or not."""
    uid = obj["metadata"]["uid"]
    told = (each.info["cmdline"] or [""] for each in psutil.process_iter(["cmdline"]))
    return sum("qemu-system" in line[0] and any(uid in word for word in line) for line in told)


def check_only_the_guest_is_left(stage: FleetStage, obj: Object, same: str, had: list[str]) -> None:
    """See that a guest runs on where it was, that nothing else is there, and that it can move."""
    name = obj["metadata"]["name"]
    done = stage.scene.until(name, lambda obj: not obj["status"].get("leftoverHosts"))
    assert done["status"]["nodeName"] == stage.hosts[HERE]
    eventually(lambda: qemus(obj) == 1, lambda: f"one QEMU, not {qemus(obj)}")
    assert stage.guests(obj) == [HERE]
    assert who(stage, obj, HERE) == same
    assert sorted(stage.left_behind()) == had
    stage.scene.api.patch_machine(stage.scene.namespace, name, QUICK)
    stage.ask(name, migrate_to=stage.hosts[THERE])
    stage.scene.until(name, lambda obj: obj["status"]["nodeName"] == stage.hosts[THERE])
    assert stage.guests(obj) == [THERE]
    assert who(stage, obj, THERE) == same


def test_the_daemon_of_the_source_stays_away_and_its_guest_is_not_started_elsewhere(
    stage: FleetStage,
) -> None:
    """It is running all the while, which nobody can know before its daemon is back."""
    obj, same, had = sent(stage, "orphan")
    kill_daemon(stage.fleet.hosts[HERE])
    stage.scene.until("orphan", lambda obj: condition(obj, "Ready").get("status") == "Unknown")
    eventually(lambda: stage.guests(obj) == [], lambda: "its target gives it up")
    assert qemus(obj) == 1
    stage.fleet.start()
    migration = stage.moved("orphan")["status"]["migration"]
    assert (migration["result"], migration["reason"]) == ("Failed", "HostUnreachable")
    assert f"host {stage.hosts[HERE]} does not answer" in migration["message"]
    check_only_the_guest_is_left(stage, obj, same, had)


def test_the_daemon_of_the_target_stays_away_and_the_move_is_over_without_it(
    stage: FleetStage,
) -> None:
    """Half of a guest may wait there in a QEMU of its own, which ends when its daemon is back."""
    obj, same, had = sent(stage, "awaited")
    kill_daemon(stage.fleet.hosts[THERE])
    done = stage.moved("awaited")
    migration = done["status"]["migration"]
    assert (migration["result"], migration["reason"]) == ("Failed", "TargetUnreachable")
    assert f"host {stage.hosts[THERE]} " in migration["message"]
    assert done["status"]["leftoverHosts"] == [stage.hosts[THERE]]
    assert stage.guests(obj) == [HERE]
    stage.fleet.start()
    check_only_the_guest_is_left(stage, obj, same, had)


@pytest.mark.parametrize(
    ("number", "reason"), [(HERE, "HostUnreachable"), (THERE, "TargetUnreachable")]
)
def test_a_daemon_that_is_back_at_once_spoils_the_move_all_the_same(
    stage: FleetStage, number: int, reason: str
) -> None:
    """As where systemd looks after it: it may be there again before anybody missed it."""
    obj, same, had = sent(stage, "startled")
    os.kill(daemon_of(stage.fleet.hosts[number]).pid, signal.SIGKILL)
    migration = stage.moved("startled")["status"]["migration"]
    assert (migration["result"], migration["reason"]) == ("Failed", reason), migration
    assert f"host {stage.hosts[number]} " in migration["message"]
    check_only_the_guest_is_left(stage, obj, same, had)
