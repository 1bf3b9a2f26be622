"""Domain XML: how a machine is written down for libvirt, and read back.

The disks are named by pool and volume, so a definition may come before they do: it is the record
that everything else hangs on.
"""

import hashlib
import re
import uuid
from dataclasses import dataclass
from functools import lru_cache
from xml.etree import ElementTree as ET

from novacron.core.machine import MachinePlan, MachineRef, Nic, Resources
from novacron.drivers.libvirt.mark import Mark

__all__ = [
    "Accelerator",
    "Defined",
    "console_log",
    "console_past",
    "definition",
    "domain_uuid",
    "mac_of",
    "plain_name",
    "root_volume",
    "seed_volume",
    "spare_name",
]

MIB_IN_KIB = 1024
# libvirt gives every device a port of its own and leaves none for what is plugged in later.
DEVICE_PORTS = 6
SPARE_PORTS = 4
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


def seed_volume(uid: str, seed: bytes) -> str:
    """Return the name of the disk with the guest's first instructions; other ones, another name."""
    return f"{volume_prefix(uid)}seed-{hashlib.sha256(seed).hexdigest()[:12]}.img"


def console_log(uid: str) -> str:
    """Return the name of the file that keeps what the guest says."""
    return f"{volume_prefix(uid)}console.log"


def console_past(uid: str) -> str:
    """Return the name of the file with what the guest said on hosts that it has left."""
    return f"{volume_prefix(uid)}console-past.log"


def mac_of(uid: str, index: int, nic: Nic) -> str:
    """Return an interface's hardware address, the same for ever."""
    if nic.mac:
        return nic.mac.lower()
    digest = hashlib.sha256(f"{uid}/{index}/{nic.network}".encode()).digest()
    return "52:54:00:" + ":".join(f"{byte:02x}" for byte in digest[:3])


@dataclass(frozen=True, slots=True)
class Place:
    """What of a host a definition refers to."""

    pool: str
    pool_path: str
    network: str | None
    accelerator: Accelerator
    max_vcpus: int


def definition(plan: MachinePlan, name: str, seed: str, place: Place) -> str:
    """Return the XML that makes the machine."""
    size, uid = plan.resources, plan.ref.uid
    domain = ET.Element("domain", type=place.accelerator.domain_type)
    _text(domain, "name", name)
    _text(domain, "uuid", domain_uuid(uid))
    ET.SubElement(domain, "metadata").append(Mark.of(plan).element())
    _text(domain, "memory", str(size.memory_mib), unit="MiB")
    most = max(size.vcpus, place.max_vcpus)
    _text(domain, "vcpu", str(most), placement="static", current=str(size.vcpus))
    system = ET.SubElement(domain, "os")
    _text(system, "type", "hvm", arch="x86_64", machine="q35")
    ET.SubElement(system, "boot", dev="hd")
    features = ET.SubElement(domain, "features")
    for feature in ("acpi", "apic"):
        ET.SubElement(features, feature)
    domain.append(_cpu(place.accelerator))
    ET.SubElement(domain, "clock", offset="utc")
    for event, action in (("poweroff", "destroy"), ("reboot", "restart"), ("crash", "destroy")):
        _text(domain, f"on_{event}", action)
    domain.append(_devices(plan, seed, place))
    return ET.tostring(domain, encoding="unicode")


def _cpu(accelerator: Accelerator) -> ET.Element:
    cpu = ET.Element("cpu", mode=accelerator.cpu_mode)
    if accelerator.cpu_model:
        _text(cpu, "model", accelerator.cpu_model, fallback="allow")
    return cpu


def _devices(plan: MachinePlan, seed: str, place: Place) -> ET.Element:
    uid = plan.ref.uid
    devices = ET.Element("devices")
    _disk(devices, "vda", "qcow2", place.pool, root_volume(uid))
    ET.SubElement(_disk(devices, "vdb", "raw", place.pool, seed), "readonly")
    ET.SubElement(devices, "controller", type="pci", index="0", model="pcie-root")
    for port in range(1, DEVICE_PORTS + len(plan.nics) + SPARE_PORTS + 1):
        ET.SubElement(devices, "controller", type="pci", index=str(port), model="pcie-root-port")
    for index, nic in enumerate(plan.nics):
        devices.append(_interface(mac_of(uid, index, nic), place.network))
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


def _interface(mac: str, network: str | None) -> ET.Element:
    interface = ET.Element("interface", type="network" if network else "user")
    ET.SubElement(interface, "mac", address=mac)
    if network:
        ET.SubElement(interface, "source", network=network)
    ET.SubElement(interface, "model", type="virtio")
    return interface


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
    shape: str
    agent: bool
    macs: tuple[str, ...]
    hostdev: bool

    @property
    def resources(self) -> Resources:
        """Return how much it has."""
        return Resources(self.vcpus, self.memory_mib, self.mark.disk_mib)

    @classmethod
    @lru_cache(maxsize=1024)  # looked at again and again, and nearly always the same
    def read(cls, xml: str) -> "Defined | None":
        """Return what the XML of a domain says, or None when it is not ours."""
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
            shape=shape_of(xml),
            agent=channel is not None and channel.get("state") == "connected",
            macs=tuple(mac.get("address") or "" for mac in domain.findall("devices/interface/mac")),
            hostdev=domain.find("devices/hostdev") is not None,
        )


def shape_of(xml: str) -> str:
    """Return a word that changes when anything but size and mark of a definition does.

    By the text, not the tree: libvirt writes the same definition the same way each time, and
    going through a tree costs ten times as much for every look.
    """
    return hashlib.sha256(SIZES.sub("", xml).encode()).hexdigest()[:16]
