"""What a domain's XML says: how a machine is written down, or how its guest runs."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from xml.etree import ElementTree as ET

from novacron.core.machine import MachinePlan, Resources
from novacron.drivers.libvirt.domain import AGENT
from novacron.drivers.libvirt.fitted import serial_of
from novacron.drivers.libvirt.hostdev import handed_over, hostdev
from novacron.drivers.libvirt.interfaces import Plugged, plugged_in
from novacron.drivers.libvirt.mark import Mark
from novacron.drivers.libvirt.record import Record

__all__ = ["Defined", "essence", "shape_of"]

MIB_IN_KIB = 1024
# The second disk is the one with the first instructions.
SEED = 1
# What a change of size may change; all else of a definition is its shape.
SIZES = re.compile(r"<(metadata|memory|currentMemory|vcpu|uuid|name)\b[^>]*>.*?</\1>", re.DOTALL)
# A running domain's number. Apart from the above: either is found by how it begins, both are not.
NUMBERS = re.compile(r" id='\d+'")


@dataclass(frozen=True, slots=True)
class Defined:
    """What a domain's XML says, of a definition or of a running guest."""

    mark: Mark
    name: str
    vcpus: int
    memory_mib: int
    seed: str
    agent: bool
    plugged: tuple[Plugged, ...]
    handed: frozenset[str]
    disks: frozenset[tuple[str, str]]
    record: Record
    text: str = field(repr=False, compare=False)

    @property
    def shape(self) -> str:
        """Return the word for all of it that is neither size nor mark."""
        return shape_of(self.text)

    @property
    def resources(self) -> Resources:
        """Return how much it has."""
        return Resources(self.vcpus, self.memory_mib, self.mark.disk_mib)

    @classmethod
    def written(
        cls,
        plan: MachinePlan,
        name: str,
        seed: str,
        plugged: tuple[Plugged, ...],
        mark: Mark,
        text: str,
    ) -> "Defined":
        """Return what a definition says that was just written, and is this text by now.

        Reading the text would tell the same and takes as long as all else that writing does. The
        mark is given its shape.
        """
        return cls(
            mark=replace(mark, shape=shape_of(text)),
            name=name,
            vcpus=plan.resources.vcpus,
            memory_mib=plan.resources.memory_mib,
            seed=seed,
            agent=False,
            plugged=plugged,
            handed=handed_over(hostdev(device) for device in plan.devices),
            disks=frozenset(
                (each.target, serial_of(each.name)) for each in mark.volumes if not each.detached
            ),
            record=Record(),
            text=text,
        )

    @classmethod
    @lru_cache(maxsize=1024)  # looked at again and again, and nearly always the same
    def read(cls, xml: str) -> "Defined | None":
        """Return what the XML of a domain says, or None when it is not ours."""
        # Part by part: a path that is looked for goes through the whole tree, and this is done
        # for every machine that there is.
        parts = {part.tag: part for part in ET.fromstring(xml)}  # noqa: S314 - libvirt's own
        metadata = parts.get("metadata")
        mark = None if metadata is None else Mark.found(metadata)
        if mark is None or metadata is None:
            return None
        devices: dict[str, list[ET.Element]] = {}
        for device in parts["devices"]:
            devices.setdefault(device.tag, []).append(device)
        disks, vcpu = devices.get("disk", []), parts["vcpu"]
        return cls(
            mark=mark,
            name=parts["name"].text or "",
            vcpus=int(vcpu.get("current") or vcpu.text or 0),
            memory_mib=int(parts["memory"].text or 0) // MIB_IN_KIB,
            seed=_source(disks[SEED]) if len(disks) > SEED else "",
            agent=any(_is_agent_there(each) for each in devices.get("channel", ())),
            plugged=plugged_in(devices.get("interface", ())),
            handed=handed_over(devices.get("hostdev", ())),
            disks=frozenset(_serials(disks)),
            record=Record.found(metadata),
            text=xml,
        )


def _source(disk: ET.Element) -> str:
    """Return the volume that a disk is."""
    source = disk.find("source")
    return "" if source is None else source.get("volume") or ""


def _is_agent_there(channel: ET.Element) -> bool:
    """Say whether a program of the guest listens at the other end."""
    target = channel.find("target")
    if target is None or target.get("name") != AGENT:
        return False
    return target.get("state") == "connected"


def _serials(disks: Iterable[ET.Element]) -> Iterator[tuple[str, str]]:
    """Return target and serial number of each disk that has one."""
    for disk in disks:
        target, serial = disk.find("target"), disk.findtext("serial")
        if target is not None and serial:
            yield target.get("dev") or "", serial


@lru_cache(maxsize=1024)
def shape_of(xml: str) -> str:
    """Return a word that changes when anything but size and mark of a definition does.

    By the text, not the tree: libvirt writes the same definition the same way each time, and
    going through a tree costs ten times as much for every look.
    """
    return hashlib.sha256(essence(xml).encode()).hexdigest()[:16]


def essence(xml: str) -> str:
    """Return all of a definition that is neither size nor mark; of an essence, the same."""
    return NUMBERS.sub("", SIZES.sub("", xml))
