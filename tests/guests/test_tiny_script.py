"""What the built-in guest does when it is told little, and when its power fails.

Its disks hang on SCSI here, its seed is a CD-ROM, and its root is a plain file whose table of
partitions was enlarged just before the power failed.
"""

import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from guest import Guest
from novacron.guests.nocloud import nocloud_image

MIB = 2**20
ROOT_LENGTH = 446 + 16 + 12
SCRIPT = """#!/bin/bash
words=(one two)
echo "${words[1]} $(ip -4 route | grep -c default)" >>/srv/ran
"""


def _half_grown(image: Path, target: Path, mebibytes: int) -> Path:
    """Make a disk whose table says that the root is large, while its file system is not yet."""
    subprocess.run(["qemu-img", "convert", "-O", "raw", image, target], check=True)
    with target.open("r+b") as disk:
        disk.truncate(mebibytes * MIB)
        disk.seek(ROOT_LENGTH - 4)
        (start,) = struct.unpack("<I", disk.read(4))
        disk.write(struct.pack("<I", mebibytes * MIB // 512 - start))
    return target


def _scsi(disk: Path, seed: Path) -> list[str]:
    return [
        *("-device", "virtio-scsi-pci,id=scsi"),
        *("-drive", f"if=none,id=root,file={disk},format=raw", "-device", "scsi-hd,drive=root"),
        *("-drive", f"if=none,id=seed,file={seed},format=raw,read-only=on"),
        *("-device", "scsi-cd,drive=seed"),
    ]


@pytest.fixture
def guest(tiny: Path, tmp_path: Path) -> Iterator[Guest]:
    disk = _half_grown(tiny, tmp_path / "root.raw", 200)
    nics = ["-netdev", "user,id=lan", "-device", "virtio-net-pci,netdev=lan"]
    machine = Guest(tmp_path, *_scsi(disk, tmp_path / "seed.iso"), *nics)
    try:
        yield machine
    finally:
        machine.kill()


def test_a_script_runs_once_for_each_instance_whatever_happens_to_the_power(guest, tmp_path):
    """A machine is told who it is by its instance, not by how often it was switched on."""
    seed = tmp_path / "seed.iso"
    seed.write_bytes(nocloud_image("instance-id: first\nlocal-hostname: db.example.test\n", SCRIPT))
    guest.start()
    ready = guest.ready()
    assert (ready["name"], ready["ip"], ready["boot"]) == ("db", "10.0.2.15", "1")
    assert guest.shell("hostname -f; cat /srv/ran").split() == ["db.example.test", "two", "1"]
    # The growth that the power failure interrupted was taken up again.
    assert int(guest.shell("df -m / | awk 'END {print $2}'")) > 140
    guest.shell("echo mine >/srv/kept; sync")
    guest.kill()

    seed.write_bytes(nocloud_image("instance-id: second\n", SCRIPT))
    guest.start()
    ready = guest.ready()
    assert (ready["name"], ready["boot"]) == ("tiny", "2")
    assert guest.shell("cat /srv/kept; cat /srv/ran").split() == ["mine", "two", "1", "two", "1"]
    # As the guest's agent is asked to: not by the power button this time.
    guest.agent("guest-shutdown", mode="powerdown", answered=False)
    assert guest.gone(15), guest.heard
