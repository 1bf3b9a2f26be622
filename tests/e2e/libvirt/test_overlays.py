"""Disks are on top of their image: the next machine of an image has it without a copy."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from e2e.libvirt.conftest import DEAF, MIB, LibvirtStage, Object
from novacron.drivers.libvirt.domain import root_volume

IMAGE_MIB = 48
# What a disk has of its own as long as nobody writes to it: its header and tables.
LITTLE = MIB


@dataclass(frozen=True)
class Disk:
    """What QEMU itself says of a machine's first disk, and how much room it takes."""

    image: str | None
    allocated_bytes: int

    @classmethod
    def of(cls, real: LibvirtStage, obj: Object) -> "Disk":
        """Look at it where it is, while its guest runs."""
        path = real.data_directory / "novacron" / root_volume(obj["metadata"]["uid"])
        command = ["qemu-img", "info", "-U", "--output=json", str(path)]
        said = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        assert said["format"] == "qcow2"
        below = said.get("backing-filename")
        return cls(below and Path(below).name, allocated(path))


def allocated(path: Path) -> int:
    """Return how much room a file takes."""
    return path.stat().st_blocks * 512


def test_the_second_machine_of_an_image_is_on_top_of_it_like_the_first(real: LibvirtStage) -> None:
    """It is brought once, is there once, and neither disk has a copy of it."""
    name = f"heavy-{real.host}.raw"
    url = real.images.add(name, DEAF + os.urandom((IMAGE_MIB - 1) * MIB))
    first = real.create("first", url)
    real.scene.until_running("first")
    pool = real.outside.storagePoolLookupByName("novacron")
    had = {each for each in pool.listVolumes() if each.startswith("image-")}
    second = real.create("second", url)
    real.scene.until_running("second")
    assert {each for each in pool.listVolumes() if each.startswith("image-")} == had
    assert real.images.asked.count(f"/{name}") == 1
    disks = [Disk.of(real, obj) for obj in (first, second)]
    image = disks[0].image
    assert image in had
    assert [each.image for each in disks] == [image, image]
    assert allocated(real.data_directory / "novacron" / image) >= IMAGE_MIB * MIB
    assert all(each.allocated_bytes < LITTLE for each in disks), disks
