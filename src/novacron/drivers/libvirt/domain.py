"""Domain XML: how a machine is written down for libvirt.

The disks are named by pool and volume, so a definition may come before they do: it is the record
that everything else hangs on.
"""

import hashlib
import uuid
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from novacron.core.machine import MachinePlan, MachineRef
from novacron.drivers.libvirt.fitted import Fitted, disk_of
from novacron.drivers.libvirt.hostdev import hostdev
from novacron.drivers.libvirt.interfaces import interface, mac_of
from novacron.drivers.libvirt.mark import Mark
from novacron.drivers.libvirt.memory import headroom
from novacron.drivers.libvirt.ports import Port

__all__ = [
    "AGENT",
    "Accelerator",
    "Draft",
    "console_log",
    "console_past",
    "domain_uuid",
    "drafted",
    "plain_name",
    "root_volume",
    "seed_volume",
    "spare_name",
]

AGENT = "org.qemu.guest_agent.0"
# libvirt gives every device a port of its own and leaves none for what is plugged in later.
DEVICE_PORTS = 6
SPARE_PORTS = 8
QUOTES = {'"': "&quot;"}
SYSTEM = (
    '<os><type arch="x86_64" machine="q35">hvm</type><boot dev="hd"/></os>'
    "<features><acpi/><apic/></features>"
)
CLOCK_AND_ENDS = (
    '<clock offset="utc"/><on_poweroff>destroy</on_poweroff><on_reboot>restart</on_reboot>'
    "<on_crash>destroy</on_crash>"
)
DEVICES_OF_ALL = (
    f'<channel type="unix"><target type="virtio" name="{AGENT}"/></channel>'
    '<graphics type="vnc" autoport="yes" listen="127.0.0.1"/>'
    '<video><model type="vga" vram="16384" heads="1"/></video>'
    '<memballoon model="virtio"><stats period="10"/></memballoon>'
    '<rng model="virtio"><backend model="random">/dev/urandom</backend></rng>'
)
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


class Draft(NamedTuple):
    """A definition without its mark, which tells what became of it."""

    name: str
    uuid: str
    opening: str
    rest: str

    @property
    def kind(self) -> str:
        """All that says what kind of machine it is, and not which."""
        return self.opening + self.rest

    def marked(self, mark: Mark) -> str:
        """Return the XML that makes the machine."""
        return (
            f"{self.opening}<name>{escape(self.name)}</name><uuid>{self.uuid}</uuid>"
            f"<metadata>{mark.text}</metadata>{self.rest}"
        )


def drafted(
    plan: MachinePlan, name: str, seed: str, place: Place, volumes: tuple[Fitted, ...] = ()
) -> Draft:
    """Return how a machine is to be written down.

    Written as text: a tree that is made to be written takes nearly five times as long.
    """
    size = plan.resources
    cpus = max(size.vcpus, place.max_vcpus)
    limit, cells = headroom(size.memory_mib, cpus, place.memory_mib)
    opening = f'<domain type="{place.accelerator.domain_type}">{limit}'
    rest = (
        f'<memory unit="MiB">{size.memory_mib}</memory>'
        f'<vcpu placement="static" current="{size.vcpus}">{cpus}</vcpu>'
        f"{SYSTEM}{_cpu(place.accelerator, cells)}{CLOCK_AND_ENDS}"
        f"{_devices(plan, seed, place, [each for each in volumes if not each.detached])}</domain>"
    )
    return Draft(name, domain_uuid(plan.ref.uid), opening, rest)


def _cpu(accelerator: Accelerator, cells: str) -> str:
    model = accelerator.cpu_model
    named = f'<model fallback="allow">{escape(model)}</model>' if model else ""
    return f'<cpu mode="{accelerator.cpu_mode}">{named}{cells}</cpu>'


def _devices(plan: MachinePlan, seed: str, place: Place, volumes: list[Fitted]) -> str:
    uid = plan.ref.uid
    log = _quoted(f"{place.pool_path}/{console_log(uid)}")
    parts = [
        _disk("vda", 'type="qcow2" discard="unmap"', place.pool, root_volume(uid)),
        _disk("vdb", 'type="raw"', place.pool, seed, "<readonly/>"),
        *(_written(disk_of(volume)) for volume in volumes),
        _ports(DEVICE_PORTS + len(plan.nics) + len(plan.devices) + SPARE_PORTS + len(volumes)),
        *(
            _written(interface(mac_of(uid, nic), port))
            for nic, port in zip(plan.nics, place.ports, strict=True)
        ),
        *(_written(hostdev(device)) for device in plan.devices),
        f'<serial type="pty"><log file="{log}" append="on"/><target port="0"/></serial>',
        DEVICES_OF_ALL,
    ]
    return f"<devices>{''.join(parts)}</devices>"


def _disk(target: str, kind: str, pool: str, volume: str, also: str = "") -> str:
    return (
        f'<disk type="volume" device="disk"><driver name="qemu" {kind}/>'
        f'<source pool="{_quoted(pool)}" volume="{_quoted(volume)}"/>'
        f'<target dev="{target}" bus="virtio"/>{also}</disk>'
    )


@lru_cache(maxsize=64)
def _ports(count: int) -> str:
    """Return so many ports for devices."""
    ports = (
        f'<controller type="pci" index="{number}" model="pcie-root-port"/>'
        for number in range(1, count + 1)
    )
    return '<controller type="pci" index="0" model="pcie-root"/>' + "".join(ports)


def _written(element: ET.Element) -> str:
    return ET.tostring(element, encoding="unicode")


def _quoted(value: str) -> str:
    return escape(value, QUOTES)
