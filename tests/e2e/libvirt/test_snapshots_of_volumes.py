"""Snapshots of real guests with volumes: each goes back with the disks, to the very byte."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from e2e.libvirt.conftest import LibvirtStage
from e2e.libvirt.test_real_snapshots import Person
from inside_guest import from_disk
from machines import condition
from operators import eventually

Object = dict[str, Any]

DATA = {"name": "data", "size": "64Mi", "reclaimPolicy": "Delete"}
LATE = {"name": "late", "size": "32Mi", "reclaimPolicy": "Delete"}


def attached(obj: Object) -> set[str]:
    """Return the names of all volumes that the guest has."""
    entries = obj["status"].get("volumes") or ()
    return {each["name"] for each in entries if each["state"] == "Attached"}


def within(real: LibvirtStage) -> dict[str, list[str]]:
    """Return the names of all snapshots within each disk, as QEMU itself finds them there."""
    return {
        path.name: _within(path)
        for path in (real.data_directory / "novacron").glob("*.qcow2")
        if not path.name.startswith("image-")
    }


def _within(path: Path) -> list[str]:
    said = subprocess.run(
        ["qemu-img", "info", "-U", "--output=json", str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(said.stdout)
    below = told.get("backing-filename", "image-")
    assert "image-" in below, f"{path.name} is on top of {below}"
    return sorted(each["name"] for each in told.get("snapshots") or ())


def started(real: LibvirtStage, name: str) -> Person:
    """Have a guest run that has a file system on a volume."""
    real.create(name, volumes=[DATA])
    real.scene.until_running(name)
    person = Person(real, name)
    person.until_agent()
    person.shell("mke2fs -q /dev/vdc; mkdir -p /mnt/data; mount /dev/vdc /mnt/data")
    return person


def note(person: Person, text: str) -> None:
    """Have the guest keep something on its first disk and on its volume."""
    person.shell(f"echo {text} | tee /root/notes >/mnt/data/notes; sync")


def noted(person: Person) -> tuple[str, str]:
    """Return what the guest finds on its first disk and on its volume."""
    person.until_agent()
    mount = "mkdir -p /mnt/data; mountpoint -q /mnt/data || mount /dev/vdc /mnt/data"
    # Memory may hold what the disk does not: only what is read from the disk counts.
    read = f"{from_disk('/root/notes')}; {from_disk('/mnt/data/notes')}"
    found = person.shell(f"{mount}; {read}").split()
    return found[0], found[1]


@pytest.mark.full
def test_volumes_go_back_with_the_disks_and_with_the_memory(real: LibvirtStage) -> None:
    """What was written before is there again on each, what was written after on none."""
    person = started(real, "books")
    note(person, "before")
    person.ok("create", "disks", "--wait")
    note(person, "between")
    eventually(lambda: len(person.ticks()) > 1, lambda: str(person.ticks()))
    person.ok("create", "memory", "--memory", "--wait")
    at_snapshot = person.ticks()[-1]
    note(person, "after")
    assert list(within(real).values()) == [["disks", "memory"]] * 2
    assert noted(person) == ("after", "after")

    eventually(lambda: person.ticks()[-1] > at_snapshot + 1, lambda: str(person.ticks()))
    person.ok("restore", "memory", "--yes", "--wait")
    eventually(lambda: len(person.steps_back()) == 1, lambda: str(person.ticks()))
    assert person.steps_back()[0] <= at_snapshot + 1, "it counts on from there"
    assert noted(person) == ("between", "between")
    note(person, "later")
    assert noted(person) == ("later", "later")

    person.ok("restore", "disks", "--yes", "--wait")
    real.scene.until_running("books")
    assert noted(person) == ("before", "before")
    assert attached(person.obj) == {"data"}

    real.patch("books", {"running": False})
    real.scene.until("books", lambda obj: obj["status"]["phase"] == "Stopped")
    person.ok("restore", "memory", "--yes", "--wait")
    person.ok("delete", "memory", "--wait")
    person.ok("delete", "disks", "--wait")
    assert list(within(real).values()) == [[], []], "nothing of them is left within the disks"
    assert person.domain.snapshotListNames() == []


@pytest.mark.full
def test_volumes_come_and_go_between_snapshots(real: LibvirtStage) -> None:
    """One that came after a snapshot keeps what is on it; one that went does so as it was then."""
    person = started(real, "shelves")
    note(person, "before")
    person.ok("create", "first", "--memory", "--wait")
    real.patch("shelves", {"template": {"spec": {"volumes": [DATA, LATE]}}})
    real.scene.until("shelves", lambda obj: attached(obj) == {"data", "late"})
    # The guest's kernel takes a moment to find what was plugged in.
    person.shell("for _ in $(seq 100); do [ -b /dev/vdd ] && break; sleep 0.1; done")
    person.shell("mke2fs -q /dev/vdd; mkdir -p /mnt/late; mount /dev/vdd /mnt/late")
    person.shell("echo mine >/mnt/late/notes; sync; umount /mnt/late")
    note(person, "after")
    person.ok("restore", "first", "--yes", "--wait")
    assert noted(person) == ("before", "before")
    real.scene.until("shelves", lambda obj: attached(obj) == {"data", "late"})
    find = "mkdir -p /mnt/late; mount /dev/vdd /mnt/late; cat /mnt/late/notes; umount /mnt/late"
    assert person.shell(find) == "mine"

    person.ok("create", "second", "--wait")
    assert sorted(map(len, within(real).values())) == [1, 2, 2]
    person.shell("mount /dev/vdd /mnt/late; echo changed >/mnt/late/notes; umount /mnt/late")
    real.patch("shelves", {"template": {"spec": {"volumes": [DATA]}}})
    real.scene.until("shelves", lambda obj: attached(obj) == {"data"})
    person.ok("restore", "second", "--yes", "--wait")
    real.scene.until_running("shelves")
    real.scene.until("shelves", lambda obj: attached(obj) == {"data"})
    assert noted(person) == ("before", "before")
    person.ok("delete", "second", "--wait")
    person.ok("delete", "first", "--wait")
    real.patch("shelves", {"template": {"spec": {"volumes": [DATA, LATE]}}})
    real.scene.until("shelves", lambda obj: attached(obj) == {"data", "late"})
    assert not condition(person.obj, "Configured")
    assert [names for names in within(real).values() if names] == []


@pytest.mark.full
def test_a_snapshot_without_one_of_its_disks_is_refused_and_can_be_deleted(
    real: LibvirtStage,
) -> None:
    """Half a restore would be worse than none; a machine that is off is no different."""
    person = started(real, "torn")
    note(person, "before")
    person.ok("create", "whole", "--wait")
    note(person, "after")
    person.shell("umount /mnt/data")
    real.patch("torn", {"template": {"spec": {"volumes": [LATE]}}})
    real.scene.until("torn", lambda obj: attached(obj) == {"late"})
    held = [path.name for path in (real.data_directory / "novacron").glob("*torn.data*")]
    real.outside.storagePoolLookupByName("novacron").storageVolLookupByName(held[0]).delete()
    said = person.fails("restore", "whole", "--yes", "--wait")
    assert "torn.data" in said
    assert "is gone" in said
    assert person.shell("cat /root/notes") == "after"
    real.patch("torn", {"running": False})
    real.scene.until("torn", lambda obj: obj["status"]["phase"] == "Stopped")
    person.ok("delete", "whole", "--wait")
    assert [names for names in within(real).values() if names] == []
    assert len(real.outside.listAllDomains()) == 1
