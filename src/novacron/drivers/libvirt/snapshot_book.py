"""The book of a machine's snapshots: libvirt's records of them, kept beside the disks they are in.

libvirt sends no machine of which it has snapshots on record, and a host that is lost takes its
records with it; the snapshots themselves are within the disks. So the records are kept in a volume
too, from which whoever has the disks can have them again. Blocks.
"""

import hashlib
import json
import logging
from collections.abc import Iterator
from typing import NamedTuple
from xml.etree import ElementTree as ET

import libvirt

from novacron.drivers.libvirt import snapshot_record as on_record
from novacron.drivers.libvirt.domain import volume_prefix
from novacron.drivers.libvirt.errors import sentence
from novacron.drivers.libvirt.look import Domain
from novacron.drivers.libvirt.pool import Pool
from novacron.drivers.libvirt.snapshot_disks import disks_of, is_within
from novacron.drivers.libvirt.snapshot_removal import METADATA_ONLY
from novacron.drivers.libvirt.snapshotting import clear, unfinished
from novacron.drivers.libvirt.travel import adapted
from novacron.drivers.libvirt.travel import disks_of as files_of

__all__ = ["Book", "as_written", "keep", "put_away", "take_out"]

log = logging.getLogger(__name__)


class _Page(NamedTuple):
    name: str
    xml: str
    current: bool


class Book(NamedTuple):
    """All records that libvirt has, and what the volume is called that says so."""

    name: str
    content: bytes


def as_written(domain: Domain) -> Book | None:
    """Return the book as it has to be; none where there are no snapshots."""
    pages = [
        _Page(each.name, on_record.text_of(each.handle), bool(each.handle.isCurrent()))
        for each in on_record.records(domain.handle)
    ]
    if not pages:
        return None
    content = json.dumps(pages).encode()
    digest = hashlib.sha256(content).hexdigest()[:12]
    return Book(f"{_prefix(domain.uid)}{digest}.json", content)


def keep(pool: Pool, domain: Domain) -> None:
    """Write down all records that libvirt has, in place of what was written before.

    Under another name, before the older one goes: there is a whole book at any moment. What only
    the book knows, because somebody died who had put it away, is never lost by this.
    """
    take_out(pool, domain)
    before, book = _books(pool, domain.uid), as_written(domain)
    if book is None:
        _remove(pool, before)
        return
    # One that is there may be empty: who made it may have died before it was written.
    if book.name not in before or pool.read(book.name) != book.content:
        pool.fill(book.name, len(book.content), [book.content])
    _remove(pool, before - {book.name})


def put_away(pool: Pool, domain: Domain) -> None:
    """Have libvirt not know of the snapshots, so that it lets the machine go.

    One that was never finished is cleared first: without its record nobody would know that the
    guest's file systems may still be at rest for it.
    """
    for name in unfinished(domain):
        clear(domain, name)
    keep(pool, domain)
    for record in list(on_record.records(domain.handle)):
        record.handle.delete(METADATA_ONLY)


def take_out(pool: Pool, domain: Domain) -> None:
    """Have libvirt know again of all snapshots that are within the first disk."""
    books = _books(pool, domain.uid)
    if not books:
        return
    known = {each.name for each in on_record.records(domain.handle)}
    root = next(iter(disks_of(domain)), None)
    for page in _pages(pool, books):
        # The marker is within no disk, and tells whether a restore was made.
        is_there = root is not None and (
            page.name == on_record.MARKER or is_within(root, page.name)
        )
        if page.name in known or not is_there:
            continue
        flags = on_record.REDEFINE | (on_record.CURRENT if page.current else 0)
        domain.handle.snapshotCreateXML(_for_this_host(page.xml, pool, domain), flags)
        known.add(page.name)


def _for_this_host(xml: str, pool: Pool, domain: Domain) -> str:
    """Return a record with its disks in the pools of this host.

    Without the one that it came after: libvirt would want that one first, and may never have it.
    """
    record = ET.fromstring(xml)  # noqa: S314 - libvirt's own
    for parent in record.findall("parent"):
        record.remove(parent)
    for tag in ("domain", "inactiveDomain"):
        for then in record.findall(tag):
            text = ET.tostring(then, encoding="unicode")
            there = adapted(text, domain.configured.text, _pools(text, pool, domain))
            record[list(record).index(then)] = ET.fromstring(there)  # noqa: S314 - our own
    return ET.tostring(record, encoding="unicode")


def _pools(then: str, pool: Pool, domain: Domain) -> dict[str, str]:
    """Return in which pool of this host each file is of a machine as it was then.

    It may have had another seed, which is beside the first disk as they all are.
    """
    own = volume_prefix(domain.uid)
    files = {file: pool.name for _, file in files_of(then) if file.startswith(own)}
    return files | {each.file: each.pool for each in domain.configured.mark.volumes}


def _pages(pool: Pool, books: frozenset[str]) -> Iterator[_Page]:
    for book in sorted(books):
        try:
            yield from (_Page(*page) for page in json.loads(pool.read(book)))
        except (TypeError, ValueError) as error:
            log.warning("%s was not written to its end: %s", book, error)


def _remove(pool: Pool, books: frozenset[str]) -> None:
    for book in books:
        try:
            pool.remove(book)
        except libvirt.libvirtError as error:
            log.warning("%s stays: %s", book, sentence(error))  # it says nothing that is wrong


def _books(pool: Pool, uid: str) -> frozenset[str]:
    return frozenset(name for name in pool.names() if name.startswith(_prefix(uid)))


def _prefix(uid: str) -> str:
    return f"{volume_prefix(uid)}snapshots-"
