"""Examples that simulated hosts run too, as they are printed, with real guests on real hosts."""

import pytest
import yaml

from e2e.libvirt.conftest import LibvirtStage
from e2e.libvirt.moving import FleetStage
from e2e.test_hooks import because, careful
from e2e.test_moves import REPOSITORY, novacron
from rights import ROOT


@pytest.mark.full
@pytest.mark.skipif(not ROOT, reason="hosts of their own need root")
def test_the_example_of_a_move_moves_when_the_command_line_asks(shared: FleetStage) -> None:
    """What stands above it is typed, and the guest goes on counting on the other host."""
    body = yaml.safe_load((REPOSITORY / "examples/02-migrate.yaml").read_text())
    body["metadata"]["namespace"] = shared.scene.namespace
    body["spec"]["template"]["spec"]["nodeSelector"] = {"test/fleet": shared.scene.namespace}
    shared.scene.api.create(body)
    obj = shared.scene.until_running("traveller")
    start = shared.hosts.index(obj["status"]["nodeName"])
    before = shared.tick(obj, start)
    moved = novacron(shared.scene, "vm", "migrate", "traveller", "--wait")
    assert f"moved to {shared.hosts[1 - start]}" in moved.stdout
    assert shared.guests(obj) == [1 - start]
    assert before < shared.tick(obj, 1 - start) < before + 120


@pytest.mark.full
def test_the_example_of_hooks_waits_for_both_of_them(real: LibvirtStage) -> None:
    """Its guest really sleeps: after it is up, and before it is shut down."""
    real.scene.api.create(careful(real.scene, real.host))
    real.scene.until("careful", because("HookRunning"))
    obj = real.scene.until_running("careful")
    real.patch("careful", {"running": False})
    real.scene.until("careful", because("HookRunning"))
    assert real.domain(obj).isActive()
    real.scene.until("careful", lambda obj: obj["status"]["phase"] == "Stopped")
    assert not real.domain(obj).isActive()
