"""Domain XML: how a machine is written down for libvirt.

The disks are named by pool and volume, so a definition may come before they do: it is the record
that everything else hangs on.
"""

import hashlib
import uuid
from dataclasses import dataclass
from functools import lru_cache
from xml.etree import ElementTree as ET

from novacron.core.machine import MachinePlan, MachineRef
from novacron.drivers.libvirt.fitted import Fitted, disk_of
from novacron.drivers.libvirt.hostdev import hostdev
from novacron.drivers.libvirt.interfaces import interface, mac_of
from novacron.drivers.libvirt.mark import Mark
from novacron.drivers.libvirt.memory import add_headroom
from novacron.drivers.libvirt.ports import Port

__all__ = [
    "AGENT",
    "Accelerator",
    "console_log",
    "console_past",
    "definition",
    "domain_uuid",
    "plain_name",
    "root_volume",
    "seed_volume",
    "spare_name",
]

AGENT = "org.qemu.guest_agent.0"
# libvirt gives every device a port of its own and leaves none for what is plugged in later.
DEVICE_PORTS = 6
SPARE_PORTS = 8
UID_NAMESPACE = uuid.UUID("7d1f1c8e-2f5c-4b7a-9d0e-6b1a5a3c9f40")


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
    ET.SubElement(agent, "target", type="virtio", name=AGENT)
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
