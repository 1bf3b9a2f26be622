"""Machines with snapshots move, and begin anew elsewhere: the snapshots are where the disks are."""

import libvirt
import pytest

from e2e.libvirt.moving import FleetStage, result
from inside_guest import agent_answers, inside
from machines import Object, condition
from operators import eventually
from rights import ROOT

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not ROOT, reason="hosts of their own need root"),
]

FENCE = [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]


def noted(stage: FleetStage, obj: Object, number: int) -> str:
    """Return what a guest noted on its disk."""
    with stage.domain(obj, number) as domain:
        eventually(lambda: agent_answers(domain), lambda: "its agent answers")
        return inside(domain, "cat /root/notes")


def note(stage: FleetStage, obj: Object, number: int, text: str) -> None:
    """Have a guest keep something on its disk."""
    with stage.domain(obj, number) as domain:
        eventually(lambda: agent_answers(domain), lambda: "its agent answers")
        inside(domain, f"echo {text} >/root/notes; sync")


def names(obj: Object) -> set[str]:
    """Return the snapshots that the status tells of."""
    return {each["name"] for each in obj["status"].get("snapshots") or ()}


def run_with_snapshots(stage: FleetStage, name: str, **more: object) -> Object:
    """Have a guest run on the first host that noted things before and after two snapshots."""
    obj = stage.run(name, **more)
    note(stage, obj, 0, "before")
    wanted = [{"name": "disks"}, {"name": "memory", "memory": True}]
    patch(stage, name, snapshots=wanted)
    stage.scene.until(name, lambda obj: names(obj) == {"disks", "memory"})
    note(stage, obj, 0, "after")
    return obj


def patch(stage: FleetStage, name: str, **spec: object) -> None:
    """Change what is wanted of a machine."""
    stage.scene.api.patch_machine(stage.scene.namespace, name, {"spec": spec})


def require_going_back(stage: FleetStage, obj: Object, number: int) -> None:
    """Have a machine go back to both of its snapshots, where it is now, and then lose them."""
    name = obj["metadata"]["name"]
    assert noted(stage, obj, number) == "after"
    for snapshot in ("memory", "disks"):
        patch(stage, name, restore={"snapshot": snapshot, "request": f"{snapshot}-{number}"})
        stage.scene.until(name, lambda obj, request=f"{snapshot}-{number}": restored(obj, request))
        stage.scene.until_running(name)
        assert noted(stage, obj, number) == "before"
        note(stage, obj, number, "after")
    gone = [{"name": each, "discard": True} for each in ("disks", "memory")]
    patch(stage, name, snapshots=gone)
    stage.scene.until(name, lambda obj: names(obj) == set())
    with stage.domain(obj, number) as domain:
        assert domain.snapshotNum() == 0
        assert not books(domain)


def restored(obj: Object, request: str) -> bool:
    """Say whether a machine went back as asked."""
    told = obj["status"].get("restore") or {}
    return bool(told.get("request") == request and told.get("succeeded"))


def books(domain: libvirt.virDomain) -> list[str]:
    """Return the books of a machine's snapshots, wherever they are on its host."""
    found: list[str] = []
    for pool in domain.connect().listAllStoragePools():
        pool.refresh()
        mine = f"{domain.UUIDString()}-snapshots-"
        found += [name for name in pool.listVolumes() if name.startswith(mine)]
    return found


def test_snapshots_come_along_while_the_guest_runs(stage: FleetStage) -> None:
    """It counts on; and where it is then it goes back to both of them."""
    obj = run_with_snapshots(stage, "traveller")
    told = stage.scene.until_running("traveller")
    assert condition(told, "LiveMigratable")["status"] == "True"
    before = stage.tick(obj, 0)
    stage.ask("traveller", migrate_to=stage.hosts[1])
    done = stage.moved("traveller")
    assert done["status"]["migration"]["result"] == "Succeeded", done["status"]["migration"]
    assert before < stage.tick(obj, 1) < before + 60
    assert names(done) == {"disks", "memory"}
    assert condition(done, "Snapshotted").get("status") != "False"
    require_going_back(stage, obj, 1)


def test_a_drained_host_is_left_by_a_machine_that_has_snapshots_and_must_be_stopped(
    stage: FleetStage,
) -> None:
    """With its owner's consent it is stopped, after its hook, moved with them, and started."""
    policy = {"allowLiveMigration": False}
    program = {"command": ["/bin/sh", "-c", "echo packs >>/root/packed; sync"]}
    hooks = {"preStop": {"exec": program}}
    obj = run_with_snapshots(stage, "settler", policy=policy, lifecycle=hooks)
    drain = {"spec": {"drain": {"stopAllowed": True}}}
    stage.scene.api.patch_host(stage.hosts[0], drain)
    stage.scene.until_host(
        stage.hosts[0], lambda obj: condition(obj, "Drained").get("status") == "True"
    )
    stage.scene.until_running("settler")
    assert stage.guests(obj) == [1]
    with stage.domain(obj, 1) as domain:
        eventually(lambda: agent_answers(domain), lambda: "its agent answers")
        assert inside(domain, "cat /root/packed") == "packs", "once, before it left"
    require_going_back(stage, obj, 1)
    stage.scene.api.patch_host(stage.hosts[0], {"spec": {"drain": None}})


def test_an_operator_that_is_killed_while_they_are_put_away_loses_none(stage: FleetStage) -> None:
    """Whether the machine has come by then or stays."""
    obj = run_with_snapshots(stage, "pilgrim", policy={"bandwidth": "80Mbps", "compression": False})
    stage.ask("pilgrim", migrate_to=stage.hosts[1])
    stage.under_way("pilgrim")
    stage.scene.operator.kill()
    stage.scene.operator.start()
    stage.ask("pilgrim", migrate_cancel="true")
    done = stage.moved("pilgrim")
    (number,) = stage.guests(obj)
    assert done["status"]["nodeName"] == stage.hosts[number]
    require_going_back(stage, obj, number)


@pytest.mark.parametrize("stage", ["novacron"], indirect=True)
def test_a_machine_whose_disks_are_copied_takes_its_snapshots_along_only_when_it_may_be_stopped(
    stage: FleetStage,
) -> None:
    """Else it says so beforehand, and what to do when asked.

    That both hosts see some other storage is of no help.
    """
    team = {"name": "team", "pool": "shared", "shared": True}
    for host in stage.hosts:
        stage.scene.api.patch_host(host, {"spec": {"libvirt": {"storageClasses": [team]}}})
        stage.scene.until_host(host, lambda obj: bool(obj["status"].get("storageClasses")))
    obj = run_with_snapshots(stage, "homely")
    stage.scene.until(
        "homely", lambda obj: condition(obj, "LiveMigratable").get("reason") == "HasSnapshots"
    )
    stage.ask("homely", migrate_to=stage.hosts[1])
    done = stage.scene.until("homely", lambda obj: result(obj) == "Failed")
    migration = done["status"]["migration"]
    assert migration["reason"] == "HasSnapshots"
    assert "let it be stopped (--stop-allowed)" in migration["message"]
    assert stage.guests(obj) == [0]
    drain = {"spec": {"drain": {"stopAllowed": True}}}
    stage.scene.api.patch_host(stage.hosts[0], drain)
    stage.scene.until_host(
        stage.hosts[0], lambda obj: condition(obj, "Drained").get("status") == "True"
    )
    told = stage.scene.until_running("homely")
    assert stage.guests(obj) == [1]
    assert names(told) == {"disks", "memory"}
    require_going_back(stage, obj, 1)
    stage.scene.api.patch_host(stage.hosts[0], {"spec": {"drain": None}})


def test_a_machine_that_begins_anew_has_its_snapshots(stage: FleetStage) -> None:
    """The host that had them on record is off."""
    obj = run_with_snapshots(stage, "heir")
    stage.fleet.hosts[0].power_off()
    stage.scene.api.patch_host(stage.hosts[0], {"spec": {"taints": FENCE}})
    stage.scene.until("heir", lambda obj: obj["status"]["nodeName"] == stage.hosts[1])
    told = stage.scene.until_running("heir")
    assert names(told) == {"disks", "memory"}
    require_going_back(stage, obj, 1)
    stage.fleet.start()
    stage.scene.api.patch_host(stage.hosts[0], {"spec": {"taints": None}})
    stage.scene.until("heir", lambda obj: not obj["status"].get("leftoverHosts"))
    assert stage.guests(obj) == [1]
