"""What others took of a pool is measured seldom, told in steps, and never told too small."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from novacron.drivers.libvirt.foreign import AGAIN_SECONDS, Foreign

MIB = 1024 * 1024
ROOT = "0b5a6b9c-6f3c-4f3c-9d55-8f8f8f8f8f8f-root.qcow2"


@dataclass
class File:
    """A file in a pool, as libvirt tells of it; sizes in MiB."""

    called: str
    capacity: int
    allocation: int

    def name(self) -> str:
        return self.called

    def info(self) -> tuple[int, int, int]:
        return 0, self.capacity * MIB, self.allocation * MIB


@dataclass
class Directory:
    """A pool of 1000 MiB that counts how often it is listed."""

    files: list[File] = field(default_factory=list)
    beside: int = 0
    looks: int = 0
    name: str = "own"

    def room(self) -> tuple[int, int]:
        return 1000, 1000 - self.beside - sum(each.allocation for each in self.files)

    @property
    def pool(self) -> Any:
        return SimpleNamespace(listAllVolumes=self._list)

    def _list(self) -> list[File]:
        self.looks += 1
        return self.files


class Clock:
    """Time that passes when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_only_disks_are_not_foreign_and_no_more_of_them_than_is_reserved() -> None:
    """Images take room, and so do snapshots within a disk beyond its size."""
    disks = [File(ROOT, 100, 60), File("volume-default.web.data-1.raw", 100, 100)]
    assert Foreign().mib(Directory(disks)) == 0
    snapshots = File("volume-default.db.data-2.qcow2", 100, 160)
    image = File("image-abc.qcow2", 400, 40)
    log = File(ROOT.replace("root.qcow2", "console.log"), 20, 20)
    assert Foreign().mib(Directory([*disks, snapshots, image, log], beside=100)) == 220


def test_what_a_guest_writes_makes_its_own_disk_nobody_elses() -> None:
    """libvirt takes the beginning of a raw disk for a header, and tells the size that is in it."""
    assert Foreign().mib(Directory([File("volume-default.web.data-1.raw", 1, 100)])) == 0


def test_it_is_rounded_up_and_stays_until_it_is_clearly_less() -> None:
    """A status is not written for every MiB."""
    pool, clock = Directory(beside=101), Clock()
    foreign = Foreign(clock)
    told = []
    for beside in (101, 120, 121, 110, 101, 100, 0):
        pool.beside, clock.now = beside, clock.now + AGAIN_SECONDS
        told.append(foreign.mib(pool))
    assert told == [120, 120, 140, 140, 140, 100, 0]


def test_disks_are_asked_for_only_when_the_use_changed_or_after_a_while() -> None:
    """There may be thousands of them, and the look is made all the time."""
    pool, clock = Directory([File(ROOT, 100, 10)], beside=100), Clock()
    foreign = Foreign(clock)
    for _ in range(5):
        assert foreign.mib(pool) == 100
    assert pool.looks == 1
    pool.beside = 200
    assert foreign.mib(pool) == 200
    clock.now += AGAIN_SECONDS
    foreign.mib(pool)
    assert pool.looks == 3
