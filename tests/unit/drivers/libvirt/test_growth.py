"""How a guest grows what is on a disk that grew: the script itself, with a guest's files faked.

Which programs it calls for which disk, partition and file system, some of which no guest of our
tests has. That these do what is asked of them is theirs.
"""

import os
import subprocess
from pathlib import Path

import pytest

from novacron.drivers.libvirt.growth import GROW
from rights import ROOT

pytestmark = pytest.mark.skipif(not ROOT, reason="a guest's /dev and /sys need root")

# What is mounted is asked for at the last of these by mount itself.
PLACES = ("sys", "dev", "proc")
PROGRAMS = ("growpart", "resize2fs", "xfs_growfs", "btrfs")
# growpart fails where nothing is free behind a partition, and what is on it grows nevertheless.
FAKE = """#!/bin/sh
printf '%s\\n' "${0##*/} $*" >>"$SAID"
[ "${0##*/}" != growpart ]
"""


class Guest:
    """What the script sees of a guest: its disks, and what is mounted."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for name in ("sys/class/block", "dev/by-label", "proc", "bin"):
            (directory / name).mkdir(parents=True)
        for name in PROGRAMS:
            (directory / "bin" / name).write_text(FAKE)
            (directory / "bin" / name).chmod(0o755)

    def add_disk(self, name: str, serial: str = "", partitions: tuple[int, ...] = ()) -> None:
        """Plug in a disk, as the kernel of a guest shows it."""
        disk = self.directory / "sys/devices" / name
        disk.mkdir(parents=True)
        (disk / "serial").write_text(serial)
        for number in partitions:
            (disk / f"{name}{number}").mkdir()
            (disk / f"{name}{number}/partition").write_text(f"{number}\n")
        for each in (disk, *(disk / f"{name}{number}" for number in partitions)):
            shown = self.directory / "sys/class/block" / each.name
            shown.symlink_to(os.path.relpath(each, shown.parent))
            os.mknod(self.directory / "dev" / each.name, 0o060600, os.makedev(7, 250))

    def grown(self, *mounts: str, serial: str = "", shell: str = "sh") -> list[str]:
        """Return what the script has the guest's programs do."""
        (self.directory / "proc/mounts").write_text("".join(f"{each} rw 0 0\n" for each in mounts))
        places = " && ".join(f"mount --bind {self.directory}/{at} /{at}" for at in PLACES)
        said = self.directory / "said"
        said.touch()
        script = f'{places} && exec /bin/{shell} -c "$@"'
        subprocess.run(
            ["unshare", "-m", "sh", "-c", script, "", GROW, "novacron", serial],
            check=True,
            env={"PATH": f"{self.directory}/bin:/usr/bin:/bin", "SAID": str(said)},
        )
        return said.read_text().splitlines()


@pytest.fixture
def guest(tmp_path: Path) -> Guest:
    """A guest with a first disk that has two partitions, and one without any."""
    made = Guest(tmp_path)
    made.add_disk("vda", partitions=(1, 15))
    made.add_disk("vdc", "data")
    return made


@pytest.mark.parametrize(
    ("kind", "call"),
    [
        ("ext2", "resize2fs /dev/vda1"),
        ("ext4", "resize2fs /dev/vda1"),
        ("xfs", "xfs_growfs /"),
        ("btrfs", "btrfs filesystem resize max /"),
    ],
)
def test_the_disk_with_the_root_grows_with_its_partitions_and_nothing_else_does(
    guest: Guest, kind: str, call: str
) -> None:
    """Each file system by its own program; what has none, as that of the firmware, stays."""
    mounts = (
        "proc /proc proc",
        f"/dev/vda1 / {kind}",
        "/dev/vda15 /boot/efi vfat",
        "/dev/vdc /srv ext4",
    )
    assert guest.grown(*mounts) == ["growpart /dev/vda 1", call, "growpart /dev/vda 15"]


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize(
    ("kind", "call"),
    [
        ("ext3", "resize2fs /dev/vdc"),
        ("xfs", "xfs_growfs /srv/my data"),
        ("btrfs", "btrfs filesystem resize max /srv/my data"),
    ],
)
def test_a_volume_is_found_by_its_serial_number_wherever_it_is_mounted(
    guest: Guest, kind: str, call: str, shell: str
) -> None:
    """Under whatever name of its device, and with blanks as the kernel writes them."""
    (guest.directory / "dev/by-label/data").symlink_to("../vdc")
    mounts = ("/dev/vda1 / ext4", rf"/dev/by-label/data /srv/my\040data {kind}")
    assert guest.grown(*mounts, serial="data", shell=shell) == [call]


def test_the_partition_of_a_volume_grows_first(guest: Guest) -> None:
    """A file system grows into its partition only."""
    guest.add_disk("vdd", "logs", (2,))
    mounts = ("/dev/vda1 / ext4", "/dev/vdd2 /var/log xfs")
    assert guest.grown(*mounts, serial="logs") == ["growpart /dev/vdd 2", "xfs_growfs /var/log"]


def test_what_is_not_understood_is_left_alone(guest: Guest) -> None:
    """A volume that is not there, one that is not mounted, and a root that is on no disk."""
    assert guest.grown("/dev/vda1 / ext4", "/dev/vdc /srv ext4", serial="other") == []
    assert guest.grown("/dev/vda1 / ext4", serial="data") == []
    assert guest.grown("overlay / overlay", "/dev/vdc /srv ext4") == []
