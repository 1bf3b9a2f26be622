"""Domain XML: how a machine is written down for libvirt, and read back.

The disks are named by pool and volume, so a definition may come before they do: it is the record
that everything else hangs on.
"""

import hashlib
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from xml.etree import ElementTree as ET

from novacron.core.hooks import Ran
from novacron.core.machine import MachinePlan, MachineRef, Resources
from novacron.drivers.libvirt.fitted import Fitted, disk_of
from novacron.drivers.libvirt.hostdev import handed_over, hostdev
from novacron.drivers.libvirt.interfaces import Plugged, interface, mac_of, plugged_in
from novacron.drivers.libvirt.mark import Mark
from novacron.drivers.libvirt.memory import add_headroom
from novacron.drivers.libvirt.ports import Port
from novacron.drivers.libvirt.record import Record

__all__ = [
    "Accelerator",
    "Defined",
    "console_log",
    "console_past",
    "definition",
    "domain_uuid",
    "plain_name",
    "root_volume",
    "seed_volume",
    "shape_of",
    "spare_name",
]

MIB_IN_KIB = 1024
# libvirt gives every device a port of its own and leaves none for what is plugged in later.
DEVICE_PORTS = 6
SPARE_PORTS = 8
UID_NAMESPACE = uuid.UUID("7d1f1c8e-2f5c-4b7a-9d0e-6b1a5a3c9f40")
# What a change of size may change; all else of a definition is its shape.
SIZES = re.compile(
    r"<(metadata|memory|currentMemory|vcpu|uuid|name)\b[^>]*>.*?</\1>|\sid='\d+'", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Accelerator:
    """How guests run: the domain type, and the CPU they see."""

    domain_type: str
    cpu_mode: str
    cpu_model: str | None = None


@lru_cache(maxsize=1024)
def domain_uuid(uid: str) -> str:
    """Return the domain's UUID: the owner's, so that libvirt itself allows it only once."""
    try:
        return str(uuid.UUID(uid))
    except ValueError:
        return str(uuid.uuid5(UID_NAMESPACE, uid))


def plain_name(ref: MachineRef) -> str:
    """Return what people would call it; a namespace has no dots, so this is one machine's."""
    return f"{ref.namespace}.{ref.name}"


def spare_name(ref: MachineRef) -> str:
    """Return its name where somebody else's domain has the plain one."""
    return f"{plain_name(ref)}.{domain_uuid(ref.uid)[:8]}"


def volume_prefix(uid: str) -> str:
    """Return how the names of all volumes of a machine begin."""
    return f"{domain_uuid(uid)}-"


def root_volume(uid: str) -> str:
    """Return the name of the first disk."""
    return f"{volume_prefix(uid)}root.qcow2"


def seed_volume(uid: str, content: bytes) -> str:
    """Return the name of the disk with the guest's first instructions; other ones, another name."""
    return f"{volume_prefix(uid)}seed-{hashlib.sha256(content).hexdigest()[:12]}.img"


def console_log(uid: str) -> str:
    """Return the name of the file that keeps what the guest says."""
    return f"{volume_prefix(uid)}console.log"


def console_past(uid: str) -> str:
    """Return the name of the file with what the guest said on hosts that it has left."""
    return f"{volume_prefix(uid)}console-past.log"


@dataclass(frozen=True, slots=True)
class Place:
    """What of a host a definition refers to; one port for each interface."""

    pool: str
    pool_path: str
    ports: tuple[Port, ...]
    accelerator: Accelerator
    max_vcpus: int
    memory_mib: int


def definition(
    plan: MachinePlan, name: str, seed: str, place: Place, volumes: tuple[Fitted, ...] = ()
) -> str:
    """Return the XML that makes the machine."""
    size, uid = plan.resources, plan.ref.uid
    domain = ET.Element("domain", type=place.accelerator.domain_type)
    _text(domain, "name", name)
    _text(domain, "uuid", domain_uuid(uid))
    ET.SubElement(domain, "metadata").append(Mark.of(plan, volumes).element())
    _text(domain, "memory", str(size.memory_mib), unit="MiB")
    most = max(size.vcpus, place.max_vcpus)
    _text(domain, "vcpu", str(most), placement="static", current=str(size.vcpus))
    system = ET.SubElement(domain, "os")
    _text(system, "type", "hvm", arch="x86_64", machine="q35")
    ET.SubElement(system, "boot", dev="hd")
    features = ET.SubElement(domain, "features")
    for feature in ("acpi", "apic"):
        ET.SubElement(features, feature)
    cpu = _cpu(place.accelerator)
    add_headroom(domain, cpu, size.memory_mib, place.memory_mib)
    domain.append(cpu)
    ET.SubElement(domain, "clock", offset="utc")
    for event, action in (("poweroff", "destroy"), ("reboot", "restart"), ("crash", "destroy")):
        _text(domain, f"on_{event}", action)
    domain.append(_devices(plan, seed, place, [each for each in volumes if not each.detached]))
    return ET.tostring(domain, encoding="unicode")


def _cpu(accelerator: Accelerator) -> ET.Element:
    cpu = ET.Element("cpu", mode=accelerator.cpu_mode)
    if accelerator.cpu_model:
        _text(cpu, "model", accelerator.cpu_model, fallback="allow")
    return cpu


def _devices(plan: MachinePlan, seed: str, place: Place, volumes: list[Fitted]) -> ET.Element:
    uid = plan.ref.uid
    devices = ET.Element("devices")
    _disk(devices, "vda", "qcow2", place.pool, root_volume(uid))
    ET.SubElement(_disk(devices, "vdb", "raw", place.pool, seed), "readonly")
    devices.extend(disk_of(volume) for volume in volumes)
    ET.SubElement(devices, "controller", type="pci", index="0", model="pcie-root")
    for number in range(1, _ports_of(plan) + len(volumes) + 1):
        ET.SubElement(devices, "controller", type="pci", index=str(number), model="pcie-root-port")
    for nic, port in zip(plan.nics, place.ports, strict=True):
        devices.append(interface(mac_of(uid, nic), port))
    for device in plan.devices:
        devices.append(hostdev(device))
    serial = ET.SubElement(devices, "serial", type="pty")
    log = f"{place.pool_path}/{console_log(uid)}"
    ET.SubElement(serial, "log", file=log, append="on")
    ET.SubElement(serial, "target", port="0")
    agent = ET.SubElement(devices, "channel", type="unix")
    ET.SubElement(agent, "target", type="virtio", name="org.qemu.guest_agent.0")
    ET.SubElement(devices, "graphics", type="vnc", autoport="yes", listen="127.0.0.1")
    video = ET.SubElement(devices, "video")
    ET.SubElement(video, "model", type="vga", vram="16384", heads="1")
    balloon = ET.SubElement(devices, "memballoon", model="virtio")
    ET.SubElement(balloon, "stats", period="10")
    rng = ET.SubElement(devices, "rng", model="virtio")
    _text(rng, "backend", "/dev/urandom", model="random")
    return devices


def _disk(devices: ET.Element, target: str, kind: str, pool: str, volume: str) -> ET.Element:
    disk = ET.SubElement(devices, "disk", type="volume", device="disk")
    driver = {"name": "qemu", "type": kind}
    ET.SubElement(disk, "driver", driver | ({"discard": "unmap"} if kind == "qcow2" else {}))
    ET.SubElement(disk, "source", pool=pool, volume=volume)
    ET.SubElement(disk, "target", dev=target, bus="virtio")
    return disk


def _ports_of(plan: MachinePlan) -> int:
    return DEVICE_PORTS + len(plan.nics) + len(plan.devices) + SPARE_PORTS


def _text(parent: ET.Element, tag: str, text: str, **attributes: str) -> None:
    ET.SubElement(parent, tag, attributes).text = text


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

    @property
    def ran(self) -> tuple[Ran, ...]:
        """Return what was done for the guest since it was started."""
        return self.record.ended

    @classmethod
    @lru_cache(maxsize=1024)  # looked at again and again, and nearly always the same
    def read(cls, xml: str) -> "Defined | None":
        """Return what the XML of a domain says, or None when it is not ours."""
        return cls.parsed(xml)

    @classmethod
    def parsed(cls, xml: str) -> "Defined | None":
        """Return what XML says that nobody will look at again."""
        domain = ET.fromstring(xml)  # noqa: S314 - libvirt's own
        mark = Mark.found(domain)
        if mark is None:
            return None
        vcpu = domain.find("vcpu")
        assert vcpu is not None
        seed = domain.find("devices/disk[2]/source")
        channel = domain.find("devices/channel/target[@name='org.qemu.guest_agent.0']")
        return cls(
            mark=mark,
            name=domain.findtext("name") or "",
            vcpus=int(vcpu.get("current") or vcpu.text or 0),
            memory_mib=int(domain.findtext("memory") or 0) // MIB_IN_KIB,
            seed=(seed.get("volume") or "") if seed is not None else "",
            agent=channel is not None and channel.get("state") == "connected",
            plugged=plugged_in(domain),
            handed=handed_over(domain),
            disks=frozenset(_disks(domain)),
            record=Record.found(domain),
            text=xml,
        )


def _disks(domain: ET.Element) -> Iterator[tuple[str, str]]:
    """Return target and serial number of each disk that has one."""
    for disk in domain.findall("devices/disk"):
        target, serial = disk.find("target"), disk.findtext("serial")
        if target is not None and serial:
            yield target.get("dev") or "", serial


@lru_cache(maxsize=1024)
def shape_of(xml: str) -> str:
    """Return a word that changes when anything but size and mark of a definition does.

    By the text, not the tree: libvirt writes the same definition the same way each time, and
    going through a tree costs ten times as much for every look.
    """
    return hashlib.sha256(SIZES.sub("", xml).encode()).hexdigest()[:16]
