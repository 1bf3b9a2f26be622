"""What a machine has on a host that must be wherever it goes. Blocks.

Pools are told apart by a mark in them: two hosts that see the same mark see the same disks.
"""

import secrets
import time
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any
from xml.etree import ElementTree as ET

import libvirt

from novacron.core.errors import Busy, Rejected
from novacron.core.migration import DISK_LOST
from novacron.drivers.libvirt.disk_files import BASE, QCOW2
from novacron.drivers.libvirt.domain import console_log, console_past, root_volume
from novacron.drivers.libvirt.errors import sentence
from novacron.drivers.libvirt.host import LibvirtHost
from novacron.drivers.libvirt.look import Domain
from novacron.drivers.libvirt.pool import Pool, class_pool
from novacron.drivers.libvirt.snapshot_record import records
from novacron.drivers.libvirt.storage import size_of

__all__ = [
    "Belonging",
    "Belongings",
    "Marks",
    "Unplugged",
    "marks_of",
    "pool_of",
    "refresh",
    "standing_pools",
    "storage_marks",
]

MARK = "novacron-pool-"
MARK_END = ".id"
# Pools for one image, there for a moment, are not persistent.
STANDING = libvirt.VIR_CONNECT_LIST_STORAGE_POOLS_PERSISTENT
IN_USE = libvirt.VIR_CONNECT_LIST_STORAGE_POOLS_ACTIVE | STANDING
# What a guest once said is kept, but not without bound.
MOST_SAID = 1024 * 1024
SECTOR = 512
PATIENCE_SECONDS = 3.0
LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Belonging:
    """One disk; of the guest's first instructions, the bytes.

    ``file_bytes`` is how long its file is, where that is copied as it is. One that is ``common``
    may be other machines' too: it is neither copied nor ever removed because a machine has left.
    """

    target: str
    volume: str
    format: str
    capacity: int
    marks: frozenset[str]
    content: bytes | None = None
    common: bool = False
    file_bytes: int = 0

    @property
    def as_made(self) -> tuple[int, str]:
        """How large what it is copied into has to be, and of which format."""
        if self.file_bytes:
            return -(-self.file_bytes // SECTOR) * SECTOR, "raw"
        return self.capacity, self.format


@dataclass(frozen=True, slots=True)
class Unplugged:
    """A volume of a machine that its running guest does not have, because it awaits a restart."""

    name: str
    file: str
    marks: frozenset[str]


@dataclass(frozen=True, slots=True)
class Belongings:
    """All disks of a machine, what it said on its console so far, and where that is kept.

    ``snapshots`` are within its disks; ``foreign`` ones were taken by somebody else. ``classes``
    tells the storage class of its files, also of those that a running guest does not have; an
    empty one is the host's own pool. Those are ``unplugged``: nobody copies them with a guest.
    ``papers`` are small files without which nobody goes back to the snapshots. ``changing``:
    somebody is at all that at this moment.
    """

    disks: tuple[Belonging, ...]
    said: bytes
    said_in: frozenset[str]
    snapshots: int = 0
    foreign: int = 0
    classes: Mapping[str, str] = field(default_factory=dict)
    unplugged: tuple[Unplugged, ...] = ()
    papers: Mapping[str, bytes] = field(default_factory=dict)
    changing: bool = False

    def contents(self) -> Mapping[str, object]:
        """Return them as the core carries them."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @classmethod
    def of(cls, contents: Mapping[str, Any]) -> "Belongings":
        """Read what the core carried."""
        return cls(**contents)

    @classmethod
    def packed(cls, pool: Pool, uid: str, domain: Domain | None) -> "Belongings":
        """Return what a machine has; one whose domain has gone has only what it said."""
        past, marks = pool.read(console_past(uid)) + pool.read(console_log(uid)), Marks()
        if domain is None:
            return cls((), past[-MOST_SAID:], marks.of(pool))
        ours = sum(1 for _ in records(domain.handle))
        foreign = int(domain.handle.snapshotNum()) - ours
        disks = tuple(_disks(pool, domain, marks))
        said = past[-MOST_SAID:]
        plugged = {disk.volume for disk in disks}
        unplugged = tuple(_unplugged(pool, domain, plugged, marks))
        return cls(disks, said, marks.of(pool), ours, foreign, _classes(domain), unplugged)

    def has_snapshots_in(self, disk: Belonging) -> bool:
        """Say whether a disk may have snapshots within."""
        return bool(self.snapshots) and disk.format == QCOW2 and disk.target != BASE

    def own_marks(self, uid: str) -> frozenset[str]:
        """Return the marks of where its host keeps all that is the machine's alone.

        Also of where that was before: a guest that runs keeps its first disk there.
        """
        ours = (each.marks for each in self.disks if each.volume == root_volume(uid))
        return self.said_in.union(*ours)

    def pools_on(self, host: LibvirtHost) -> dict[str, str]:
        """Return in which pool of a host each file belongs; none where it has not the class."""
        named = {name: kind.pool for name, kind in host.storage_classes.items()} | {"": host.pool}
        classes = {disk.volume: "" for disk in self.disks} | dict(self.classes)
        return {file: named[name] for file, name in classes.items() if name in named}


def standing_pools(connection: libvirt.virConnect) -> Iterator[Pool]:
    """Return all pools that are in use and ours, also those that no class has any more.

    By the mark in them: a pool without one never was.
    """
    for each in connection.listAllStoragePools(IN_USE):
        pool = class_pool(connection, each.name())
        if marks_of(pool):
            yield pool


def storage_marks(pool: Pool) -> frozenset[str]:
    """Return what tells a pool from others, marked if it is not yet.

    Two that mark it at once each see the other's mark or their own, whoever is later both.
    """
    refresh(pool)
    if not (found := marks_of(pool)):
        pool.fill(f"{MARK}{secrets.token_hex(8)}{MARK_END}", 1, [b"\n"])
        refresh(pool)
        found = marks_of(pool)
    return found


@dataclass(frozen=True, slots=True)
class Marks:
    """What tells pools from others, read once for each.

    libvirt opens every file of a pool to see what is new in it, which takes the longer the more
    disks are there. So whoever asks about many disks at once asks one of these.
    """

    _found: dict[str, frozenset[str]] = field(default_factory=dict)

    def of(self, pool: Pool) -> frozenset[str]:
        """Return what tells a pool from others, as it was when first asked for."""
        if pool.name not in self._found:
            self._found[pool.name] = storage_marks(pool)
        return self._found[pool.name]


def pool_of(pool: Pool, name: str) -> Pool | None:
    """Return another pool of the same host, or None where it has none of this name."""
    try:
        return pool if name == pool.name else class_pool(pool.connection, name)
    except Rejected:
        return None


def marks_of(pool: Pool) -> frozenset[str]:
    """Return the marks in a pool, as far as libvirt has seen them."""
    return frozenset(
        name for name in pool.names() if name.startswith(MARK) and name.endswith(MARK_END)
    )


def refresh(pool: Pool) -> None:
    """Have libvirt see what other hosts made: a mark that it overlooks would cost disks.

    It refuses while a volume is being filled, and for a moment afterwards.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            pool.refresh()
        except libvirt.libvirtError as error:
            if time.monotonic() > deadline:
                raise Busy(f"a volume is being filled: {sentence(error)}") from error
            time.sleep(LOOK_SECONDS)
        else:
            return


def _disks(pool: Pool, domain: Domain, marks: Marks) -> "list[Belonging]":
    flags = 0 if domain.running else libvirt.VIR_DOMAIN_XML_INACTIVE
    tree = ET.fromstring(domain.handle.XMLDesc(flags))  # noqa: S314 - libvirt's own
    pools: dict[str, Pool] = {}
    found: list[Belonging] = []
    seeds = {each.seed for each in (domain.configured, domain.running) if each is not None}
    for disk in tree.findall("devices/disk"):
        source, target, driver = disk.find("source"), disk.find("target"), disk.find("driver")
        if source is None or target is None or source.get("volume") is None:
            continue
        name = source.get("pool") or ""
        if name not in pools:
            found_pool = pool_of(pool, name)
            if found_pool is None:
                raise Busy(f"there is no storage pool {name}, in which its disk is")
            pools[name] = found_pool
        there = pools[name]
        seen = marks.of(there)  # before anything is read, as it has libvirt look what is there
        volume = source.get("volume") or ""
        kind = (driver.get("type") if driver is not None else None) or "raw"
        # Others may be of any size.
        content = there.read(volume) if volume in seeds else None
        dev = target.get("dev") or ""
        capacity = _capacity(there, domain, dev, volume)
        others = disk.find("readonly") is not None or disk.find("shareable") is not None
        common = others and content is None
        if content is None and not common and there.find(volume) is None:
            _require_new(domain, there, volume)
        found.append(Belonging(dev, volume, kind, capacity, seen, content, common))
    return found


def _require_new(domain: Domain, pool: Pool, file: str) -> None:
    """Tell nobody that a disk is here which was here once and is away, as with its storage.

    The marks in the pool would be those of whatever is in its place, and who compares them with
    his own takes what he has of the disk for a copy that may go.
    """
    marks = [each.mark for each in (domain.configured, domain.running) if each is not None]
    made = [volume.made for mark in marks for volume in mark.volumes if volume.file == file]
    if not made and file == root_volume(domain.uid):
        made = [mark.begun is not False for mark in marks]
    if any(made) or not made:
        raise Rejected(
            f"its disk {file} is not in pool {pool.name} any more: mount the pool's storage or put "
            "the file back",
            reason=DISK_LOST,
        )


def _unplugged(
    pool: Pool, domain: Domain, plugged: Container[str], marks: Marks
) -> Iterator[Unplugged]:
    for volume in domain.configured.mark.volumes:
        if volume.made and not volume.detached and volume.file not in plugged:
            there = pool_of(pool, volume.pool)
            seen = frozenset[str]() if there is None else marks.of(there)
            yield Unplugged(volume.name, volume.file, seen)


def _classes(domain: Domain) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in (domain.running, domain.configured):
        if each is not None:
            found |= {each.seed: ""} | {it.file: it.storage_class for it in each.mark.volumes}
    return found


def _capacity(pool: Pool, domain: Domain, dev: str, volume: str) -> int:
    """Return how large a disk is for its guest."""
    if domain.running:
        return int(domain.handle.blockInfo(dev)[0])
    handle = pool.find(volume)
    return size_of(handle) if handle else 0
