"""A domain's XML for another host: the guest stays the same, what belongs to the host changes."""

from collections.abc import Iterator, Mapping
from xml.etree import ElementTree as ET

from novacron.drivers.libvirt.fitted import elements
from novacron.drivers.libvirt.mark import NAMESPACE

__all__ = [
    "SENT",
    "adapted",
    "disks_of",
    "is_marked_as_sent",
    "marked_as_sent",
    "pools_by_target",
    "pools_of",
    "unmarked",
    "with_plain_cpu",
    "without_hardware",
]

# QEMU has it wherever it runs.
PLAIN_CPU = "qemu64"
# Of a guest that never runs: it is up because libvirt sends only such as are.
SENT = "https://novacron.io/sent"


def adapted(xml: str, draft: str, pools: Mapping[str, str]) -> str:
    """Return a domain as another host is to have it, which gave a draft of how it would.

    Disks keep their names and targets, and ``pools`` tells in which pool of that host each file is;
    interfaces are plugged in where the draft says, and what the guest says is kept where the draft
    keeps it.
    """
    domain, there = ET.fromstring(xml), ET.fromstring(draft)  # noqa: S314 - libvirt's and ours
    name, new_name = domain.find("name"), there.findtext("name")
    if name is not None and new_name:
        name.text = new_name
    _store(domain, pools)
    _forget_images(domain)
    _plug(domain, there)
    log = there.find("devices/serial/log")
    for each in domain.iter("log"):
        if log is not None:
            each.set("file", log.get("file") or "")
    for graphics in domain.findall("devices/graphics[@autoport='yes']"):
        graphics.set("port", "-1")
    return ET.tostring(domain, encoding="unicode")


def with_plain_cpu(xml: str) -> str:
    """Return a domain with a CPU that any host has; its topology and memory stay."""
    domain = ET.fromstring(xml)  # noqa: S314 - libvirt's own
    cpu = domain.find("cpu")
    if cpu is None:
        return xml
    for part in [each for each in cpu if each.tag not in ("numa", "topology")]:
        cpu.remove(part)
    for name in list(cpu.attrib):
        del cpu.attrib[name]
    cpu.attrib |= {"mode": "custom", "match": "exact", "check": "none"}
    model = ET.Element("model", fallback="allow")
    model.text = PLAIN_CPU
    cpu.insert(0, model)
    return ET.tostring(domain, encoding="unicode")


def without_hardware(xml: str) -> str:
    """Return a domain without devices of its host, which it gets anew where it goes."""
    domain = ET.fromstring(xml)  # noqa: S314 - libvirt's own
    devices = domain.find("devices")
    handed = domain.findall("devices/hostdev")
    if devices is None or not handed:
        return xml
    for each in handed:
        devices.remove(each)
    return ET.tostring(domain, encoding="unicode")


def marked_as_sent(xml: str) -> str:
    """Return a domain that says that it is up for nothing but to be sent."""
    domain = ET.fromstring(xml)  # noqa: S314 - libvirt's own
    metadata = domain.find("metadata")
    if metadata is None:
        metadata = ET.SubElement(domain, "metadata")
    ET.SubElement(metadata, f"{{{SENT}}}sent")
    return ET.tostring(domain, encoding="unicode")


def is_marked_as_sent(xml: str) -> bool:
    """Say whether a domain says so."""
    # The word alone may be left: libvirt keeps the name of a space that nothing is in any more.
    return SENT in xml and bool(_marks(ET.fromstring(xml)))  # noqa: S314 - libvirt's own


def unmarked(xml: str) -> str:
    """Return a domain that does not say so any more."""
    if SENT not in xml:
        return xml
    domain = ET.fromstring(xml)  # noqa: S314 - libvirt's own
    for metadata, sent in _marks(domain):
        metadata.remove(sent)
    return ET.tostring(domain, encoding="unicode")


def _marks(domain: ET.Element) -> list[tuple[ET.Element, ET.Element]]:
    found = domain.findall("metadata")
    return [(each, sent) for each in found for sent in each.findall(f"{{{SENT}}}sent")]


def pools_of(xml: str) -> dict[str, str]:
    """Return the pool of each disk, by its file."""
    return {file: pool for pool, file in disks_of(xml)}


def pools_by_target(xml: str) -> dict[str, str]:
    """Return the pool of each disk, by where the guest has it."""
    domain = ET.fromstring(xml)  # noqa: S314 - libvirt's own
    disks = [(disk.find("target"), disk.find("source")) for disk in domain.iterfind("devices/disk")]
    return {
        target.get("dev") or "": source.get("pool") or ""
        for target, source in disks
        if target is not None and source is not None and source.get("volume")
    }


def disks_of(xml: str) -> list[tuple[str, str]]:
    """Return pool and volume of each disk."""
    domain = ET.fromstring(xml)  # noqa: S314 - libvirt's and ours
    return [(each.get("pool") or "", each.get("volume") or "") for each in _sources(domain)]


def _sources(domain: ET.Element) -> Iterator[ET.Element]:
    for source in domain.findall("devices/disk/source"):
        if source.get("volume"):
            yield source


def _store(domain: ET.Element, pools: Mapping[str, str]) -> None:
    """Have disks, and the volumes of our mark, in other pools.

    Not by their targets: the other host would give those anew, in the order that is asked for now.
    """
    for source in _sources(domain):
        source.attrib.pop("index", None)
        source.set("pool", pools.get(source.get("volume") or "", source.get("pool") or ""))
    for mark in domain.findall(f"metadata/{{{NAMESPACE}}}machine"):
        for volume in elements(mark):
            volume.set("pool", pools.get(volume.get("file") or "", volume.get("pool") or ""))


def _forget_images(domain: ET.Element) -> None:
    """Have the other host find out by itself what each disk is on top of.

    A daemon that was started again while its guest ran tells of it with paths, which are its own:
    a disk that is copied is on top of nothing there, and one that both see is so by another path.
    """
    for disk in domain.findall("devices/disk"):
        for below in disk.findall("backingStore"):
            disk.remove(below)


def _plug(domain: ET.Element, there: ET.Element) -> None:
    """Plug each interface in where the draft has the one with the same hardware address."""
    drafts = {_mac(each): each for each in there.findall("devices/interface")}
    for interface in domain.findall("devices/interface"):
        draft = drafts.get(_mac(interface))
        if draft is None:
            continue
        interface.set("type", draft.get("type") or "")
        for tag in ("source", "virtualport", "vlan"):
            for old in interface.findall(tag):
                interface.remove(old)
            for new in draft.findall(tag):
                interface.insert(1, new)


def _mac(interface: ET.Element) -> str:
    mac = interface.find("mac")
    return (mac.get("address") or "").lower() if mac is not None else ""
