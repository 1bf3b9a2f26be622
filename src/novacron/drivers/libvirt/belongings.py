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
from novacron.drivers.libvirt.domain import console_log, console_past
from novacron.drivers.libvirt.errors import sentence
from novacron.drivers.libvirt.host import LibvirtHost
from novacron.drivers.libvirt.look import Domain
from novacron.drivers.libvirt.pool import Pool, class_pool
from novacron.drivers.libvirt.snapshot_record import records
from novacron.drivers.libvirt.storage import size_of

__all__ = [
    "Belonging",
    "Belongings",
    "Unplugged",
    "marks_of",
    "pool_of",
    "refresh",
    "storage_marks",
]

MARK = "novacron-pool-"
MARK_END = ".id"
# What a guest once said is kept, but not without bound.
MOST_SAID = 1024 * 1024
PATIENCE_SECONDS = 3.0
LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Belonging:
    """One disk; of the guest's first instructions, the bytes."""

    target: str
    volume: str
    format: str
    capacity: int
    marks: frozenset[str]
    content: bytes | None = None
    readonly: bool = False


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
    """

    disks: tuple[Belonging, ...]
    said: bytes
    said_in: frozenset[str]
    snapshots: int = 0
    foreign: int = 0
    classes: Mapping[str, str] = field(default_factory=dict)
    unplugged: tuple[Unplugged, ...] = ()

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
        past = pool.read(console_past(uid)) + pool.read(console_log(uid))
        if domain is None:
            return cls((), past[-MOST_SAID:], storage_marks(pool))
        ours = sum(1 for _ in records(domain.handle))
        foreign = int(domain.handle.snapshotNum()) - ours
        disks = tuple(_disks(pool, domain))
        said = past[-MOST_SAID:]
        unplugged = tuple(_unplugged(pool, domain, {disk.volume for disk in disks}))
        return cls(disks, said, storage_marks(pool), ours, foreign, _classes(domain), unplugged)

    def pools_on(self, host: LibvirtHost) -> dict[str, str]:
        """Return in which pool of a host each file belongs; none where it has not the class."""
        named = {name: kind.pool for name, kind in host.storage_classes.items()} | {"": host.pool}
        classes = {disk.volume: "" for disk in self.disks} | dict(self.classes)
        return {file: named[name] for file, name in classes.items() if name in named}


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


def _disks(pool: Pool, domain: Domain) -> "list[Belonging]":
    flags = 0 if domain.running else libvirt.VIR_DOMAIN_XML_INACTIVE
    tree = ET.fromstring(domain.handle.XMLDesc(flags))  # noqa: S314 - libvirt's own
    pools: dict[str, tuple[Pool, frozenset[str]]] = {}
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
            pools[name] = found_pool, storage_marks(found_pool)
        there, marks = pools[name]
        volume = source.get("volume") or ""
        kind = (driver.get("type") if driver is not None else None) or "raw"
        # Others that are only read may be of any size.
        content = there.read(volume) if volume in seeds else None
        dev = target.get("dev") or ""
        capacity = _capacity(there, domain, dev, volume)
        readonly = disk.find("readonly") is not None
        found.append(Belonging(dev, volume, kind, capacity, marks, content, readonly))
    return found


def _unplugged(pool: Pool, domain: Domain, plugged: Container[str]) -> Iterator[Unplugged]:
    for volume in domain.configured.mark.volumes:
        if volume.made and not volume.detached and volume.file not in plugged:
            there = pool_of(pool, volume.pool)
            marks = frozenset[str]() if there is None else storage_marks(there)
            yield Unplugged(volume.name, volume.file, marks)


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
