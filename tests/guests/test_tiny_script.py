"""What the built-in guest does when it is told little, and when its power fails.

Its disks hang on SCSI here, its seed is a CD-ROM, and its root is a plain file whose table of
partitions was enlarged just before the power failed.
"""

import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from guest import Guest, overlay, virtio_disk
from novacron.guests.nocloud import nocloud_image

MIB = 2**20
ROOT_LENGTH = 446 + 16 + 12
SIZE = "df -m / | awk 'END {print $2}'"
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


def _lose_power_while_growing(guest: Guest) -> None:
    """Leave a journal behind that makes the file system larger when it is written back."""
    guest.monitor("block_resize", device="root", size=100 * 1024 * MIB)
    while int(guest.shell(SIZE)) < 1000:
        pass
    guest.shell("sync")
    assert int(guest.shell(SIZE)) < 90_000
    guest.kill()


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
    seed.write_bytes(
        bytes(nocloud_image("instance-id: first\nlocal-hostname: db.example.test\n", SCRIPT))
    )
    guest.start()
    ready = guest.ready()
    assert (ready["name"], ready["ip"], ready["boot"]) == ("db", "10.0.2.15", "1")
    assert guest.shell("hostname -f; cat /srv/ran").split() == ["db.example.test", "two", "1"]
    # The growth that the power failure interrupted was taken up again.
    assert int(guest.shell(SIZE)) > 140
    guest.shell("echo mine >/srv/kept; sync")
    _lose_power_while_growing(guest)

    seed.write_bytes(bytes(nocloud_image("instance-id: second\n", SCRIPT)))
    guest.start()
    ready = guest.ready()
    assert (ready["name"], ready["boot"]) == ("tiny", "2")
    assert guest.shell("cat /srv/kept; cat /srv/ran").split() == ["mine", "two", "1", "two", "1"]
    assert int(guest.shell(SIZE)) > 90_000
    # As the guest's agent is asked to: not by the power button this time.
    guest.agent("guest-shutdown", mode="powerdown", answered=False)
    assert guest.gone(30), guest.heard


def test_a_seed_that_cannot_be_used_is_named_and_a_late_network_is_used(tiny, tmp_path):
    """Silence would look like a guest that is broken; and a cable may be plugged in later."""
    seed = tmp_path / "seed.iso"
    mime = "Content-Type: multipart/mixed; boundary=x\n\n--x--\n"
    seed.write_bytes(
        bytes(nocloud_image("instance-id: [secret\n", mime, "version: 1\nconfig: []\n"))
    )
    disk = overlay(tiny, tmp_path / "root.qcow2", 64)
    nic = ["-netdev", "user,id=lan", "-device", "virtio-net-pci,netdev=lan,id=nic"]
    guest = Guest(
        tmp_path, *virtio_disk(disk, "qcow2"), *virtio_disk(seed, read_only=True), *nic
    )  # fmt: skip
    try:
        guest.start()
        guest.monitor("set_link", name="nic", up=False)
        said = guest.until(r"[\s\S]*ready hostname=tiny ip=none boot=1\n")[0]
        assert "meta-data: is not valid YAML and is ignored: 2:1: error" in said
        assert "network-config: version 1 is not supported, only 2; using DHCP" in said
        assert "user-data: ignored, for it begins neither with #! nor with #cloud-config" in said
        assert "secret" not in said
        guest.monitor("set_link", name="nic", up=True)
        guest.until("eth0 has 10.0.2.15/24", 30)
    finally:
        guest.kill()
