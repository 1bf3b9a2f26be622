"""Records of snapshots at libvirt: what it says of one, and what we note beside that.

A record comes before the snapshot it is about and says so, until the snapshot is whole. The note
is the description of libvirt's own record, so it is wherever that is.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

import libvirt

from novacron.core.snapshot import Snapshot
from novacron.drivers.libvirt.errors import code_of

__all__ = [
    "AMBIGUOUS",
    "CURRENT",
    "MARKER",
    "REDEFINE",
    "Note",
    "Record",
    "find",
    "records",
    "seeds",
    "text_of",
    "write",
    "written_anew",
]

WORD = "novacron "
# A record of no snapshot: it is the current one for as long as a restore has not been made.
MARKER = "novacron.restoring"
AMBIGUOUS = "SnapshotNameAmbiguous"
REDEFINE = libvirt.VIR_DOMAIN_SNAPSHOT_CREATE_REDEFINE
CURRENT = libvirt.VIR_DOMAIN_SNAPSHOT_CREATE_CURRENT


@dataclass(frozen=True, slots=True)
class Note:
    """What we note about a snapshot; until it is ``made``, it is none."""

    made: bool = False
    quiesced: bool = False
    size: int | None = None
    restored: str = ""

    def __str__(self) -> str:
        return WORD + json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def read(cls, text: str | None) -> "Note | None":
        """Return the note in a description, or None when it is somebody else's."""
        if not text or not text.startswith(WORD):
            return None
        try:
            return cls(**json.loads(text.removeprefix(WORD)))
        except (TypeError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class Record:
    """One snapshot as libvirt has it on record."""

    handle: libvirt.virDomainSnapshot
    name: str
    created: datetime
    state: str
    note: Note
    seed: str

    @property
    def memory(self) -> bool:
        """Say whether it is of a running guest."""
        return self.state in ("running", "paused")

    def snapshot(self) -> Snapshot:
        """Return it in the core's words."""
        note = self.note
        return Snapshot(
            self.name, self.created, note.size, self.memory, note.quiesced, note.restored
        )

    def noted(self, domain: libvirt.virDomain, **changes: object) -> "Record":
        """Change the note; all else stays."""
        note = replace(self.note, **changes)  # type: ignore[arg-type]
        element = ET.fromstring(text_of(self.handle))  # noqa: S314 - libvirt's own
        text = element.find("description")
        assert text is not None
        text.text = str(note)
        flags = REDEFINE | (CURRENT if self.handle.isCurrent() else 0)
        handle = domain.snapshotCreateXML(ET.tostring(element, encoding="unicode"), flags)
        return replace(self, handle=handle, note=note)


def records(domain: libvirt.virDomain) -> Iterator[Record]:
    """Return every record of ours."""
    for handle in domain.listAllSnapshots():
        if (record := _read(handle)) is not None:
            yield record


def find(domain: libvirt.virDomain, name: str) -> Record | None:
    """Return our record of a name."""
    return next((each for each in records(domain) if each.name == name), None)


def seeds(domain: libvirt.virDomain) -> frozenset[str]:
    """Return the seeds without which a machine cannot go back to its snapshots."""
    return frozenset(each.seed for each in records(domain) if each.seed)


def write(
    domain: libvirt.virDomain, name: str, note: Note, now: datetime, *, current: bool = False
) -> None:
    """Record a snapshot of the disks, whether there is one or not."""
    snapshot = _element(name, note)
    ET.SubElement(snapshot, "state").text = "shutoff"
    ET.SubElement(snapshot, "creationTime").text = str(int(now.timestamp()))
    flags = libvirt.VIR_DOMAIN_XML_INACTIVE | libvirt.VIR_DOMAIN_XML_SECURE
    snapshot.append(ET.fromstring(domain.XMLDesc(flags)))  # noqa: S314 - libvirt's own
    order = ET.tostring(snapshot, encoding="unicode")
    domain.snapshotCreateXML(order, REDEFINE | (CURRENT if current else 0))


def written_anew(name: str, note: Note) -> str:
    """Return the order for a snapshot that libvirt makes and records itself."""
    return ET.tostring(_element(name, note), encoding="unicode")


def _element(name: str, note: Note) -> ET.Element:
    snapshot = ET.Element("domainsnapshot")
    ET.SubElement(snapshot, "name").text = name
    ET.SubElement(snapshot, "description").text = str(note)
    return snapshot


def _read(handle: libvirt.virDomainSnapshot) -> Record | None:
    try:
        text = text_of(handle)
    except libvirt.libvirtError as error:
        if code_of(error) == libvirt.VIR_ERR_NO_DOMAIN_SNAPSHOT:
            return None  # it was just removed
        raise
    element = ET.fromstring(text)  # noqa: S314 - libvirt's own
    note = Note.read(element.findtext("description"))
    if note is None:
        return None
    seconds = int(element.findtext("creationTime") or 0)
    seed = element.find("domain/devices/disk[2]/source")
    return Record(
        handle=handle,
        name=element.findtext("name") or "",
        created=datetime.fromtimestamp(seconds, UTC),
        state=element.findtext("state") or "",
        note=note,
        seed=(seed.get("volume") or "") if seed is not None else "",
    )


def text_of(handle: libvirt.virDomainSnapshot) -> str:
    """Return all that libvirt has on record of a snapshot."""
    text: str = handle.getXMLDesc(libvirt.VIR_DOMAIN_SNAPSHOT_XML_SECURE)
    return text
