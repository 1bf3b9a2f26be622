"""Real guests that cannot go on elsewhere, because they would miss something of their CPU."""

from collections.abc import Iterator

import pytest

from api import Api
from e2e.conftest import Stage
from e2e.libvirt.moving import FleetStage, result
from fleet import daemon_of
from lesser_qemu import lesser_qemu
from machines import Object, condition
from novacron.localcluster.hypervisor import Fleet
from operators import RunningOperator
from rights import ROOT

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not ROOT, reason="hosts of their own need root"),
]


@pytest.fixture
def scene(libvirt_operator: RunningOperator, api: Api) -> Iterator[Stage]:
    """The operator with nothing declared."""
    stage = Stage(api, libvirt_operator, libvirt_operator.namespaces[0], [])
    yield stage
    stage.clear()


def answer(stage: FleetStage, name: str, **words: str) -> Object:
    """Ask for a move and return what is said of it in the end."""
    before = (stage.scene.api.machine(stage.scene.namespace, name) or {})["status"]
    began = (before.get("migration") or {}).get("startTime")
    stage.ask(name, **words)
    done = stage.scene.until(
        name,
        lambda obj: result(obj) is not None and obj["status"]["migration"]["startTime"] != began,
    )
    found: Object = done["status"]["migration"]
    return found


def give(stage: FleetStage, number: int, model: str | None) -> None:
    """Have machines see another CPU on a host."""
    name = stage.hosts[number]
    stage.scene.api.patch_host(name, {"spec": {"libvirt": {"cpuModel": model}}})
    stage.scene.until_host(
        name, lambda obj: obj["status"]["cpu"]["guestModel"] == (model or "qemu64")
    )


def test_a_guest_is_not_sent_where_it_would_miss_something_of_its_cpu(
    scene: Stage, fleet: Fleet
) -> None:
    """It runs on and the reason names what is missing; what it was started with counts."""
    stage = FleetStage.declared(scene, fleet, "shared", cpu_models=("Nehalem", None))
    obj = stage.run("choosy")
    before = stage.tick(obj, 0)
    refused = answer(stage, "choosy", migrate_to=stage.hosts[1])
    assert (refused["result"], refused["reason"]) == ("Refused", "NoHostFits")
    assert "of the CPU that it runs with (Nehalem)" in refused["message"]
    assert "popcnt" in refused["message"]
    assert stage.guests(obj) == [0]
    assert stage.tick(obj, 0) > before

    give(stage, 1, "Westmere")
    moved = answer(stage, "choosy", migrate_to=stage.hosts[1])
    assert moved["result"] == "Succeeded", moved
    # The host that it is on now has more than the one it came from, but the guest has not.
    back = answer(stage, "choosy", migrate_to=stage.hosts[0])
    assert back["result"] == "Succeeded", back
    assert stage.tick(obj, 0) > before

    give(stage, 1, None)
    words = {"migrate_to": stage.hosts[1], "migrate_stop_allowed": "true"}
    stopped = answer(stage, "choosy", **words)
    assert stopped["result"] == "Succeeded", stopped
    scene.until_running("choosy")
    assert stage.guests(obj) == [1]
    scene.until("choosy", lambda obj: obj["status"]["guestCpu"].startswith("qemu64-"))


def test_a_host_says_that_it_has_no_such_cpu(scene: Stage, fleet: Fleet) -> None:
    """In its own condition, and takes no machines until it has."""
    stage = FleetStage.declared(scene, fleet, "shared")
    settings = {"spec": {"libvirt": {"cpuModel": "Nehelam"}}}
    scene.api.patch_host(stage.hosts[1], settings)
    told = scene.until_host(
        stage.hosts[1], lambda obj: condition(obj, "Ready")["reason"] == "CpuModelUnknown"
    )
    assert "spec.libvirt.cpuModel" in condition(told, "Ready")["message"]


def test_a_guest_that_only_libvirt_refuses_runs_on_where_it_was(scene: Stage, fleet: Fleet) -> None:
    """Nobody could tell beforehand; the reason does, and a drain does not try again and again."""
    stage = FleetStage.declared(scene, fleet, "shared")
    obj = stage.run("trusting")
    before = stage.tick(obj, 0)
    with lesser_qemu(daemon_of(fleet.hosts[1]).pid):
        failed = answer(stage, "trusting", migrate_to=stage.hosts[1])
        assert (failed["result"], failed["reason"]) == ("Failed", "CpuIncompatible"), failed
        assert "cx16" in failed["message"]
        assert stage.guests(obj) == [0]
        assert stage.tick(obj, 0) > before
        scene.api.patch_host(stage.hosts[0], {"spec": {"drain": {}}})
        waits = scene.until("trusting", lambda obj: result(obj) == "Refused")
        assert "refused it before" in waits["status"]["migration"]["message"]
        scene.api.patch_host(stage.hosts[0], {"spec": {"drain": None}})
    assert stage.guests(obj) == [0]
