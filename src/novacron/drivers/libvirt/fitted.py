"""Volumes as a machine's mark has them: what each is called at libvirt, and how far it has come.

The mark is the record: it is written before a volume is made, so that none is ever made that
nobody knows of, and says when it was, so that one which vanished is never replaced by an empty one.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from string import ascii_lowercase
from xml.etree import ElementTree as ET

from novacron.core.machine import MachineRef
from novacron.core.volume import Access, Attachment, SeenVolume, Volume

__all__ = [
    "PREFIX",
    "Fitted",
    "disk_of",
    "elements",
    "fitted",
    "found",
    "id_of",
    "seen",
    "serial_of",
    "stem_of",
]

PREFIX = "volume-"
# The guest sees no more of a virtio disk's serial number.
LONGEST_SERIAL = 20
FLAGS = ("made", "cold", "untold", "detached")
# vda and vdb are the first disk and its seed.
TARGETS = tuple(
    f"vd{first}{second}" for first in ("", *ascii_lowercase) for second in ascii_lowercase
)[2:]


@dataclass(frozen=True, slots=True)
class Fitted:
    """One volume of a machine; ``pool`` and ``file`` are where it is.

    ``made`` says that it was there once; ``cold`` that the running guest could not take it, so
    that it waits for a restart; ``untold`` that it grew and no guest was told yet; ``detached``
    that the machine does not have it any more.
    """

    name: str
    target: str
    pool: str
    file: str
    size_mib: int
    storage_class: str = ""
    access: str = Access.ONCE
    made: bool = False
    cold: bool = False
    untold: bool = False
    detached: bool = False

    @property
    def key(self) -> str:
        """Return what it is found by among the files of all pools."""
        return f"{self.pool}/{self.file}"

    @property
    def stem(self) -> str:
        """Return what is called by its id, of which a machine has one, wherever its file is."""
        return self.file.rpartition(".")[0]

    @property
    def format(self) -> str:
        """Return how its bytes are kept."""
        return self.file.rpartition(".")[2]

    def element(self) -> ET.Element:
        """Return it as XML."""
        words = {name: getattr(self, name) for name in ("name", "target", "pool", "file")}
        words |= {"size": str(self.size_mib), "class": self.storage_class, "access": self.access}
        words |= {flag: "yes" for flag in FLAGS if getattr(self, flag)}
        return ET.Element("volume", words)


def found(mark: ET.Element) -> tuple[Fitted, ...]:
    """Return the volumes of a mark."""
    return tuple(
        Fitted(
            name=each.get("name") or "",
            target=each.get("target") or "",
            pool=each.get("pool") or "",
            file=each.get("file") or "",
            size_mib=int(each.get("size") or 0),
            storage_class=each.get("class") or "",
            access=each.get("access") or Access.ONCE,
            made=each.get("made") == "yes",
            cold=each.get("cold") == "yes",
            untold=each.get("untold") == "yes",
            detached=each.get("detached") == "yes",
        )
        for each in elements(mark)
    )


def elements(mark: ET.Element) -> list[ET.Element]:
    """Return the volumes of a mark as XML."""
    # libvirt puts some into the mark's namespace.
    return [each for each in mark if each.tag.endswith("volume")]


def stem_of(ref: MachineRef, volume: Volume) -> str:
    """Return the name of a volume's file without its ending.

    The namespace is part of it: nobody can name another namespace's volume.
    """
    return f"{PREFIX}{ref.namespace}.{volume.id_for(ref.name, ref.uid)}"


def serial_of(name: str) -> str:
    """Return by which serial number the guest finds a volume: its name, if that is short enough."""
    if len(name) <= LONGEST_SERIAL:
        return name
    return f"{name[:11]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def fitted(
    places: Mapping[str, tuple[Volume, str, str]],
    before: Iterable[Fitted],
    live: frozenset[tuple[str, str]] = frozenset(),
) -> tuple[Fitted, ...]:
    """Return the volumes a machine is to have, each where it is, and those it is to lose.

    ``places`` tells pool and file of each volume by its name, ``live`` targets and serials of a
    running guest's disks. A volume keeps its target for as long as a guest may have it.
    """
    # Not by its pool: a class may get another one, and files may be moved there by hand.
    known = {(each.storage_class, each.file): each for each in before}
    wanted = {(volume.storage_class or "", file) for volume, _, file in places.values()}
    staying = [each for each in before if (each.storage_class, each.file) in wanted]
    taken = {each.target for each in staying if not each.detached}
    taken |= {target for target, _ in live}
    having: list[Fitted] = []
    for volume, pool, file in places.values():
        old = known.get((volume.storage_class or "", file))
        target = old.target if old and _keeps_target(old, taken, live) else _free(taken)
        taken.add(target)
        having.append(_fit(volume, Fitted(volume.name, target, pool, file, 0), old))
    leaving = (each for each in before if each not in staying)
    return (*having, *(replace(each, detached=True, cold=False) for each in leaving))


def _keeps_target(old: Fitted, taken: set[str], live: frozenset[tuple[str, str]]) -> bool:
    held = (old.target, serial_of(old.name)) in live
    return held or not old.detached or old.target not in taken


def _free(taken: set[str]) -> str:
    return next(target for target in TARGETS if target not in taken)


def _fit(volume: Volume, place: Fitted, old: Fitted | None) -> Fitted:
    return replace(
        place,
        size_mib=volume.size_mib,
        storage_class=volume.storage_class or "",
        access=volume.access or Access.ONCE,
        made=old is not None and old.made,
        cold=old is not None and old.cold,
        untold=old is not None and (old.untold or old.size_mib < volume.size_mib),
    )


def disk_of(volume: Fitted) -> ET.Element:
    """Return the disk that a definition has for a volume."""
    disk = ET.Element("disk", type="volume", device="disk")
    driver = {"name": "qemu", "type": volume.format}
    # What several hosts write must not be kept in the memory of one of them.
    driver |= {"cache": "none"} if volume.access == Access.MANY else {"discard": "unmap"}
    ET.SubElement(disk, "driver", driver)
    ET.SubElement(disk, "source", pool=volume.pool, volume=volume.file)
    ET.SubElement(disk, "target", dev=volume.target, bus="virtio")
    if volume.access == Access.MANY:
        ET.SubElement(disk, "shareable")
    if volume.access == Access.READ_ONLY:
        ET.SubElement(disk, "readonly")
    ET.SubElement(disk, "serial").text = serial_of(volume.name)
    return disk


def id_of(file: str) -> str:
    """Return what the volume of a file is called within its namespace."""
    return file.rpartition(".")[0].partition(".")[2]


def seen(
    volume: Fitted, files: frozenset[str], live: frozenset[tuple[str, str]] | None
) -> SeenVolume:
    """Return how a volume is; ``live`` are targets and serials of a running guest's disks."""
    return SeenVolume(
        volume.name,
        volume.size_mib,
        _attachment(volume, volume.key in files, live),
        id_of(volume.file),
        volume.storage_class or None,
        access=Access(volume.access),
    )


def _attachment(
    volume: Fitted,
    there: bool,  # noqa: FBT001 - one of three facts that decide
    live: frozenset[tuple[str, str]] | None,
) -> Attachment:
    held = live is not None and (volume.target, serial_of(volume.name)) in live
    if volume.detached:
        return Attachment.DETACHING if held else Attachment.DETACHED
    if not there or not volume.made:
        return Attachment.PENDING
    if held or live is None:
        return Attachment.ATTACHED
    return Attachment.AWAITS_RESTART if volume.cold else Attachment.PENDING
