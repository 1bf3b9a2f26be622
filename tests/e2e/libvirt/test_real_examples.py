"""Examples as they are printed, with what stands above them, with real guests on real hosts."""

import os
import shlex
import sys
from datetime import datetime, timedelta

import pytest
import yaml

from e2e.libvirt.conftest import LibvirtStage
from e2e.libvirt.moving import FleetStage
from e2e.libvirt.test_real_machine import said
from e2e.libvirt.test_real_snapshots import Person
from e2e.test_hooks import because, careful
from e2e.test_moves import REPOSITORY, novacron
from inside_guest import agent_answers, inside
from machines import Object, condition
from novacron.core.schedule import Schedule
from operators import eventually
from pseudo_terminal import PseudoTerminal
from rights import ROOT


@pytest.mark.full
@pytest.mark.skipif(not ROOT, reason="hosts of their own need root")
@pytest.mark.parametrize("example", ["02-migrate.yaml", "04-migrate-encrypted.yaml"])
def test_the_examples_of_a_move_move_when_the_command_line_asks(
    shared: FleetStage, example: str
) -> None:
    """What stands above it is typed, and the guest goes on counting on the other host."""
    body = yaml.safe_load((REPOSITORY / "examples" / example).read_text())
    name = body["metadata"]["name"]
    body["metadata"]["namespace"] = shared.scene.namespace
    body["spec"]["template"]["spec"]["nodeSelector"] = {"test/fleet": shared.scene.namespace}
    shared.scene.api.create(body)
    obj = shared.scene.until_running(name)
    start = shared.hosts.index(obj["status"]["nodeName"])
    before = shared.tick(obj, start)
    moved = novacron(shared.scene, "vm", "migrate", name, "--wait")
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


@pytest.mark.full
def test_the_example_of_cloud_init_is_carried_out_and_not_again_after_a_restart(
    real: LibvirtStage,
) -> None:
    """The guest has the key and the file, and says which part of it was none of its business."""
    body = yaml.safe_load((REPOSITORY / "examples/24-cloud-init.yaml").read_text())
    body["metadata"]["namespace"] = real.scene.namespace
    body["spec"]["template"]["spec"]["nodeSelector"] = {"test/host": real.host}
    obj = real.scene.api.create(body)
    real.scene.until_running("furnished")
    _was_carried_out_once(real, obj, boot=1)
    real.patch("furnished", {"running": False})
    real.scene.until("furnished", lambda obj: obj["status"]["phase"] == "Stopped")
    real.patch("furnished", {"running": True})
    real.scene.until_running("furnished")
    _was_carried_out_once(real, obj, boot=2)


def _was_carried_out_once(real: LibvirtStage, obj: Object, *, boot: int) -> None:
    """What the guest has after some boot is what the example says."""
    uid, domain = obj["metadata"]["uid"], real.domain(obj)
    told = yaml.safe_load(obj["spec"]["template"]["spec"]["userData"])
    eventually(lambda: f"boot={boot}\n" in said(real, uid), lambda: said(real, uid))
    eventually(lambda: agent_answers(domain), lambda: said(real, uid))
    keys = inside(domain, "cat /root/.ssh/authorized_keys").splitlines()
    assert keys == told["ssh_authorized_keys"]
    (file,) = told["write_files"]
    assert inside(domain, f"stat -c %a {file['path']}") == "644"
    # Written before the guest is switched off, which it has little time for.
    lines = inside(domain, f"sync; cat {file['path']}").splitlines()
    assert lines == [*file["content"].splitlines(), "It was set up as furnished."]
    assert said(real, uid).count("user-data: ignored: users") == boot


def test_the_example_of_snapshots_does_what_its_words_say(real: LibvirtStage) -> None:
    """It is what people begin with: they type what stands above it, and are asked once."""
    example = (REPOSITORY / "examples/10-snapshots.yaml").read_text()
    look, go_back = (line[4:] for line in example.splitlines() if line.startswith("#   novacron"))
    body = yaml.safe_load(example)
    body["metadata"]["namespace"] = real.scene.namespace
    body["spec"]["template"]["spec"]["nodeSelector"] = {"test/host": real.host}
    real.scene.api.create(body)
    person = Person(real, "ledger")
    real.scene.until("ledger", lambda _: "before-upgrade" in person.listed())
    schedule = person.obj["status"]["snapshotSchedule"]
    assert schedule["schedule"] == "0 2 * * * Europe/Vienna"
    since, begins = (datetime.fromisoformat(schedule[at]) for at in ("since", "nextTime"))
    run = Schedule("0 2 * * *", "Europe/Vienna").next(since)
    assert run is not None
    assert run <= begins <= run + timedelta(minutes=10)
    _, row = _typed(real, look).splitlines()
    assert row.startswith("before-upgrade ")
    assert row.endswith("on demand")
    told = _typed(real, go_back, r"since before-upgrade is lost\. Go on\? \[y/N\]: ")
    assert told.endswith("ledger was brought back to snapshot before-upgrade")
    assert person.obj["status"]["restore"]["succeeded"]
    assert person.domain.snapshotCurrent().getName() == "before-upgrade"
    real.patch("ledger", {"snapshotPolicy": {"onDelete": "Protect"}})
    real.scene.api.delete_machine(real.scene.namespace, "ledger")
    real.scene.until(
        "ledger", lambda obj: condition(obj, "Removed").get("reason") == "SnapshotsProtected"
    )
    real.patch("ledger", {"snapshots": [{"name": "before-upgrade", "discard": True}]})
    real.scene.until_gone("ledger")


def _typed(real: LibvirtStage, line: str, question: str | None = None) -> str:
    """Type a command in the stage's namespace, say yes if asked, and return what it prints."""
    program, *arguments = shlex.split(line)
    assert program == "novacron"
    command = [sys.executable, "-m", "novacron.app.entry", *arguments, "-n", real.scene.namespace]
    kubeconfig = str(real.scene.operator.plane.kubeconfig)
    terminal = PseudoTerminal(command, os.environ | {"KUBECONFIG": kubeconfig})
    try:
        if question is not None:
            terminal.until(question)
            terminal.type(b"y\n")
        assert terminal.ended() == 0, terminal.screen
        return terminal.screen.decode().replace("\r", "").strip()
    finally:
        terminal.close()
