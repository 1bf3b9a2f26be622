"""Snapshots of a real guest: what it wrote before is there again, what it wrote after is not."""

import base64
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import libvirt
import libvirt_qemu
import pytest

from e2e.libvirt.conftest import LibvirtStage
from e2e.libvirt.test_real_machine import said
from machines import condition
from novacron.core.quantity import parse_quantity
from novacron.drivers.libvirt import snapshot_record as on_record
from novacron.drivers.libvirt.domain import root_volume
from novacron.drivers.libvirt.pool import read_volume
from operators import eventually

Object = dict[str, Any]

EVERY_MINUTE = {"schedule": "* * * * *", "timeZone": "Europe/Vienna", "retention": 2}


@dataclass(frozen=True)
class Person:
    """Somebody with the command line and a guest."""

    real: LibvirtStage
    name: str

    @property
    def obj(self) -> Object:
        found = self.real.scene.api.machine(self.real.scene.namespace, self.name)
        assert found is not None
        return found

    @property
    def domain(self) -> libvirt.virDomain:
        return self.real.domain(self.obj)

    def call(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Type a command."""
        kubeconfig = self.real.scene.operator.plane.kubeconfig
        return subprocess.run(
            [sys.executable, "-m", "novacron.app.entry", "vm", "snapshot", *arguments],
            env={**os.environ, "KUBECONFIG": str(kubeconfig)},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def ok(self, command: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Type a command that works."""
        flags = ("-n", self.real.scene.namespace)
        done = self.call(command, self.name, *arguments, *flags)
        assert done.returncode == 0, (done.stderr, self.real.scene.operator.log)
        return done

    def fails(self, command: str, *arguments: str) -> str:
        """Type a command that does not, and return what it says."""
        done = self.call(command, self.name, *arguments, "-n", self.real.scene.namespace)
        assert done.returncode == 1, done
        return done.stderr.splitlines()[-1]

    def agent(self, command: str, **arguments: Any) -> Any:
        """Ask the guest's agent."""
        question = json.dumps({"execute": command, "arguments": arguments})
        answer = libvirt_qemu.qemuAgentCommand(self.domain, question, 5, 0)
        return json.loads(answer)["return"]

    def until_agent(self) -> None:
        """Wait until the guest's agent answers."""

        def answers() -> bool:
            try:
                return self.agent("guest-ping") == {}
            except libvirt.libvirtError:
                return False

        eventually(answers, lambda: said(self.real, self.obj["metadata"]["uid"])[-500:])

    def shell(self, line: str) -> str:
        """Run something in the guest, and return what it printed."""
        arguments = {"path": "/bin/sh", "arg": ["-c", line], "capture-output": True}
        pid = self.agent("guest-exec", **arguments)["pid"]
        deadline = time.monotonic() + 30
        while not (done := self.agent("guest-exec-status", pid=pid))["exited"]:
            assert time.monotonic() < deadline, line
            time.sleep(0.1)
        assert done["exitcode"] == 0, done
        return base64.b64decode(done.get("out-data", "")).decode().strip()

    def write(self, text: str) -> None:
        """Have the guest keep something on its disk."""
        self.shell(f"echo {text} >/root/notes; sync")

    def ticks(self) -> list[int]:
        """Return what the guest counted so far."""
        found = re.findall(r"tick (\d+)", said(self.real, self.obj["metadata"]["uid"]))
        return [int(each) for each in found]

    def steps_back(self) -> list[int]:
        """Return where the guest counted on after it had counted further."""
        ticks = self.ticks()
        return [tick for before, tick in pairwise(ticks) if tick <= before]

    @property
    def disk(self) -> libvirt.virStorageVol:
        """Its first disk."""
        pool = self.real.outside.storagePoolLookupByName("novacron")
        return pool.storageVolLookupByName(root_volume(self.obj["metadata"]["uid"]))

    def disk_bytes(self) -> int:
        """Return how large its first disk is."""
        return int(self.disk.info()[1])

    def listed(self) -> dict[str, Object]:
        return {each["name"]: each for each in self.obj.get("status", {}).get("snapshots") or ()}


@pytest.mark.full
def test_a_guest_goes_back_to_its_disk_and_to_its_memory(real: LibvirtStage) -> None:
    """One boot for all that needs a guest which writes."""
    real.create("ledger")
    real.scene.until_running("ledger")
    person = Person(real, "ledger")
    person.until_agent()
    # Not synced: only a guest that is brought to rest has it on its disk when that is kept.
    person.shell("echo before >/root/notes")
    done = person.ok("create", "disks", "--wait")
    assert "snapshot disks of ledger taken" in done.stdout
    person.write("between")
    eventually(lambda: len(person.ticks()) > 1, lambda: str(person.ticks()))
    person.ok("create", "memory", "--memory", "--wait")
    at_snapshot = person.ticks()[-1]
    person.write("after")
    listed = person.listed()
    assert listed["disks"]["quiesced"]
    assert not listed["disks"].get("memory")
    assert listed["memory"]["memory"]
    sizes = {name: parse_quantity(each["size"]) for name, each in listed.items()}
    assert sizes["memory"] - sizes["disks"] > 20 * 2**20, "it has the memory too"
    assert sizes["disks"] > 2**16, "what the guest wrote since its image"
    _require_told(person)
    movable = condition(person.obj, "LiveMigratable")
    assert movable["reason"] == "NoOtherHost", "they would come along if there were one"

    eventually(lambda: person.ticks()[-1] > at_snapshot + 1, lambda: str(person.ticks()))
    done = person.ok("restore", "memory", "--yes", "--wait")
    assert "was brought back to snapshot memory" in done.stdout
    eventually(lambda: len(person.steps_back()) == 1, lambda: str(person.ticks()))
    assert person.steps_back()[0] <= at_snapshot + 1, "it counts on from there"
    person.until_agent()
    assert person.shell("cat /root/notes") == "between"
    assert "boot=2" not in said(real, person.obj["metadata"]["uid"])

    person.ok("restore", "disks", "--yes", "--wait")
    real.scene.until_running("ledger")
    eventually(
        lambda: said(real, person.obj["metadata"]["uid"]).count("boot=2") == 1, lambda: "boot"
    )
    person.until_agent()
    assert person.shell("cat /root/notes") == "before"
    assert not real.domain(person.obj).snapshotCurrent().getName().startswith("novacron")
    drifted = condition(person.obj, "Configured")
    assert not drifted

    _leave_remains(person.domain)
    eventually(
        lambda: sorted(person.domain.snapshotListNames()) == ["disks", "memory"],
        lambda: str(person.domain.snapshotListNames()),
    )
    person.write("thawed")
    assert list(person.listed()) == ["disks", "memory"]

    assert "has no snapshot" in person.fails("restore", "nothing", "--yes")
    assert "has a snapshot" in person.fails("create", "disks")
    person.ok("delete", "memory", "--wait")
    assert list(person.listed()) == ["disks"]
    assert person.obj["spec"]["snapshots"] == [{"name": "disks"}]


def _require_told(person: Person) -> None:
    """Require the two snapshots to be listed as the status has them, the oldest first."""
    titles, *rows = (re.split(r" {2,}", line) for line in person.ok("list").stdout.splitlines())
    assert titles == ["NAME", "CREATED", "AGE", "SIZE", "MEMORY", "QUIESCED", "STATE"]
    on_record = person.listed()
    for row, (name, *what) in zip(
        rows, (("disks", "no", "yes"), ("memory", "yes", "no")), strict=True
    ):
        known = on_record[name]
        told = [name, known["createdAt"], row[2], known["size"], *what, "on demand"]
        assert row == told
        assert re.fullmatch(r"\d+[sm]", row[2]), "its age"
    printed = json.loads(person.ok("list", "-o", "json").stdout)
    assert printed == {"machine": person.name, "snapshots": list(on_record.values())}


def _leave_remains(domain: libvirt.virDomain) -> None:
    """Do what operators do that are killed at the end of a restore and amid a snapshot."""
    now, disks = datetime.now(UTC), on_record.find(domain, "disks")
    assert disks is not None
    over = on_record.Note(made=True, restored=disks.note.restored)
    on_record.write(domain, on_record.MARKER, over, now)
    on_record.write(domain, "half", on_record.Note(), now)
    domain.fsFreeze()


@pytest.mark.full
def test_what_was_on_a_disk_while_a_guest_was_off_is_there_again(real: LibvirtStage) -> None:
    """Whether the guest runs or is off when it goes back; it is then as its owner wants it."""
    real.create("sleeper")
    real.scene.until_running("sleeper")
    person = Person(real, "sleeper")
    person.until_agent()
    person.write("before")
    _switched_off(person)
    person.ok("create", "cold", "--wait")
    assert not person.listed()["cold"].get("memory")
    _switched_on(person)
    assert person.shell("cat /root/notes") == "before"
    person.write("after")
    person.ok("restore", "cold", "--yes", "--wait")
    real.scene.until_running("sleeper")
    person.until_agent()
    assert person.shell("cat /root/notes") == "before"
    person.write("later")
    _switched_off(person)
    person.ok("restore", "cold", "--yes", "--wait")
    assert person.obj["status"]["phase"] == "Stopped"
    assert not person.domain.isActive()
    _switched_on(person)
    assert person.shell("cat /root/notes") == "before"


def _switched_off(person: Person) -> None:
    person.real.patch(person.name, {"running": False})
    person.real.scene.until(person.name, lambda obj: obj["status"]["phase"] == "Stopped")
    assert not person.domain.isActive()


def _switched_on(person: Person) -> None:
    person.real.patch(person.name, {"running": True})
    person.real.scene.until_running(person.name)
    person.until_agent()


def test_a_guest_without_an_agent_and_one_that_is_off_have_snapshots_too(
    real: LibvirtStage,
) -> None:
    """And one that somebody took with virsh stays theirs."""
    real.deaf("deaf")
    person = Person(real, "deaf")
    person.domain.snapshotCreateXML("<domainsnapshot><name>theirs</name></domainsnapshot>", 0)
    person.ok("create", "running", "--wait")
    assert not person.listed()["running"].get("quiesced")
    assert "somebody else took a snapshot theirs" in person.fails("create", "theirs", "--wait")
    assert person.obj["spec"]["snapshots"] == [{"name": "running"}], "what failed is not kept"
    real.patch("deaf", {"template": {"spec": {"resources": {"disk": "300Mi"}}}})
    real.scene.until("deaf", lambda _: person.disk_bytes() == 300 * 2**20)
    real.patch("deaf", {"running": False, "snapshots": [{"name": "stopped", "memory": True}]})
    real.scene.until("deaf", lambda obj: obj["status"]["phase"] == "Stopped")
    real.scene.until("deaf", lambda _: "stopped" in person.listed())
    assert not person.listed()["stopped"].get("memory")
    assert set(person.listed()) == {"running", "stopped"}
    person.ok("restore", "running", "--yes", "--wait")
    assert person.obj["status"]["phase"] == "Stopped"
    person.ok("delete", "running", "--wait")
    # The disk went back to its size of then, and grew again as its owner wants it.
    real.scene.until("deaf", lambda _: person.disk_bytes() == 300 * 2**20)


def test_a_restore_that_was_cut_off_before_it_went_back_is_made(
    real: LibvirtStage, tmp_path: Path
) -> None:
    """Whoever made the marker and died had changed nothing yet, and the guest's disk is told."""
    real.deaf("halted")
    person, copy = Person(real, "halted"), tmp_path / "disk.qcow2"
    _switched_off(person)
    _write_into(person.disk, copy, 1)
    person.ok("create", "first", "--wait")
    _write_into(person.disk, copy, 2)
    assert _has(person.disk, copy, 2)
    begun = on_record.Note(made=True, restored="r1")
    on_record.write(person.domain, on_record.MARKER, begun, datetime.now(UTC), current=True)
    real.patch("halted", {"restore": {"snapshot": "first", "request": "r1"}})
    obj = real.scene.until("halted", lambda obj: "restore" in obj["status"])
    assert obj["status"]["restore"]["succeeded"], obj["status"]["restore"]
    assert _has(person.disk, copy, 1)
    assert person.domain.snapshotListNames() == ["first"]


def _write_into(disk: libvirt.virStorageVol, copy: Path, pattern: int) -> None:
    """Write to a disk that no guest runs on; by a copy, because its host may be far away."""
    copy.write_bytes(read_volume(disk))
    assert _does(copy, f"write -P {pattern} 128M 1M")
    stream, content = disk.connect().newStream(), memoryview(copy.read_bytes())
    disk.upload(stream, 0, 0)
    while content:
        content = content[stream.send(bytes(content[: 256 * 1024])) :]
    stream.finish()


def _has(disk: libvirt.virStorageVol, copy: Path, pattern: int) -> bool:
    copy.write_bytes(read_volume(disk))
    return _does(copy, f"read -P {pattern} 128M 1M")


def _does(copy: Path, order: str) -> bool:
    """Have QEMU do something to a copy of a disk, without the image that is below it."""
    file = {"driver": "file", "filename": str(copy)}
    opened = json.dumps({"driver": "qcow2", "file": file, "backing": None})
    command = ["qemu-io", "-c", order, f"json:{opened}"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_a_snapshot_that_somebody_else_removed_can_be_deleted(real: LibvirtStage) -> None:
    """Nobody can go back to it, and its entry would else stay in the list for good."""
    real.deaf("bereft")
    person = Person(real, "bereft")
    for name in ("first", "second"):
        person.ok("create", name, "--wait")
    person.domain.snapshotLookupByName("first").delete()
    real.scene.until("bereft", lambda _: person.listed()["first"].get("lost"))
    assert person.ok("list").stdout.splitlines()[1].split()[-1] == "lost"
    assert 'no snapshot "first"; it has second' in person.fails("restore", "first", "--yes")
    done = person.ok("delete", "first", "--wait")
    assert done.stdout == "snapshot first of bereft deleted\n"
    assert list(person.listed()) == ["second"]
    assert person.obj["spec"]["snapshots"] == [{"name": "second"}]
    assert person.domain.snapshotListNames() == ["second"]
    real.scene.until("bereft", lambda obj: not condition(obj, "Snapshotted"))


@pytest.mark.full
@pytest.mark.timeout(400)
def test_a_schedule_is_followed_on_real_disks(real: LibvirtStage) -> None:
    """Two are kept, the oldest goes; none is taken twice for a minute."""
    real.create("nightly")
    real.patch("nightly", {"snapshotPolicy": EVERY_MINUTE})
    person = Person(real, "nightly")
    seen: set[str] = set()

    def the_oldest_went() -> bool:
        there = sorted(person.listed())
        seen.update(there)
        return len(seen) >= 3 and there == sorted(seen)[-2:]

    eventually(the_oldest_went, lambda: f"{sorted(seen)}, left: {sorted(person.listed())}", 300)
    assert sorted(person.domain.snapshotListNames()) == sorted(seen)[-2:]
    rows = person.ok("list").stdout.splitlines()[1:]
    assert {row.split()[-1] for row in rows} == {"scheduled"}
