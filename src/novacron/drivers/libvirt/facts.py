"""What a host is: how much it has, how its guests run, which versions it has. Blocks."""

from xml.etree import ElementTree as ET

import libvirt

from novacron.core.cpu import Cpu
from novacron.core.errors import Rejected
from novacron.core.host import HostFacts
from novacron.core.machine import Resources
from novacron.drivers.libvirt.cpu import guest_cpu, numa_cells, usable_models
from novacron.drivers.libvirt.domain import Accelerator
from novacron.drivers.libvirt.errors import code_of
from novacron.drivers.libvirt.hardware import Hardware
from novacron.drivers.libvirt.host import LibvirtHost
from novacron.drivers.libvirt.link import CPUS
from novacron.drivers.libvirt.pool import open_pool, storage_of
from novacron.drivers.libvirt.ports import reached_networks
from novacron.drivers.libvirt.spelling import Spelling

__all__ = ["Machinery", "facts_of"]

KIB_PER_MIB = 1024
ARCHITECTURE = "x86_64"
HARDWARE = frozenset({"vmx", "svm"})
KVM = Accelerator("kvm", "host-model")
# Emulation offers no CPU of the host's; this one boots everything we know.
TCG = Accelerator("qemu", "custom", "qemu64")


class Machinery:
    """How guests run on a host, read once for each connection."""

    def __init__(self, connection: libvirt.virConnect, cpu_model: str | None = None) -> None:
        capabilities = ET.fromstring(connection.getCapabilities())  # noqa: S314 - libvirt's own
        cpu = capabilities.find("host/cpu")
        self.cpu_model = (cpu.findtext("model") or "") if cpu is not None else ""
        self.cpu_features = _features(connection, cpu)
        guest = capabilities.find(f"guest/arch[@name='{ARCHITECTURE}']")
        kinds = [] if guest is None else [each.get("type") for each in guest.findall("domain")]
        self.can_run = bool(kinds)
        self.numa = numa_cells(capabilities)
        machines = [] if guest is None else guest.findall("machine")
        self.machine_types = tuple(sorted({each.text or "" for each in machines}))
        # libvirt offers KVM wherever there is a /dev/kvm, also where no CPU could ever serve it.
        truly = "kvm" in kinds and bool(HARDWARE & set(self.cpu_features))
        self.accelerated = truly
        self.unknown_model: str | None = None
        self.accelerator = self._accelerator(connection, cpu_model)
        # Where nothing can run, libvirt has no answer to what guests would see.
        self.guest_cpu = guest_cpu(connection, self.accelerator) if self.can_run else ("", ())
        self.cpu_key = self.cpu.key
        self.spelling = Spelling()
        self.hardware = Hardware()
        self.cpus = int(connection.getInfo()[CPUS])
        self.memory_mib = int(connection.getMemoryStats(-1)["total"]) // KIB_PER_MIB

    def _accelerator(self, connection: libvirt.virConnect, model: str | None) -> Accelerator:
        usual = KVM if self.accelerated else TCG
        if model is None or not self.can_run:
            return usual
        if model not in usable_models(connection, usual.domain_type):
            # Said where the host is asked for what it is; its machines are looked after as ever.
            self.unknown_model = model
            return usual
        return Accelerator(usual.domain_type, "custom", model)

    @property
    def cpu(self) -> Cpu:
        """The CPU that guests see, as hosts' CPUs are compared."""
        model, features = self.guest_cpu
        return Cpu(model or self.cpu_model, frozenset(features), self.acceleration)

    @property
    def acceleration(self) -> str:
        """What users know it by."""
        return "KVM" if self.accelerated else "TCG"


def facts_of(connection: libvirt.virConnect, host: LibvirtHost, machinery: Machinery) -> HostFacts:
    """Return what a host has; raise when it could run nothing."""
    if not machinery.can_run:
        raise Rejected(
            f"host {host.name} has no QEMU for x86_64 guests; install qemu-system-x86 there",
            reason="NoQemu",
        )
    if machinery.unknown_model:
        raise Rejected(
            f"guests of host {host.name} cannot have the CPU {machinery.unknown_model}: set "
            "spec.libvirt.cpuModel to one that its libvirt knows and its CPU has (virsh "
            "domcapabilities), or leave it out",
            reason="CpuModelUnknown",
        )
    capacity_mib, _ = open_pool(connection, host).room()
    guest_model, guest_features = machinery.guest_cpu
    versions = {
        "libvirt": _version(connection.getLibVersion()),
        "qemu": _version(connection.getVersion()),
    }
    return HostFacts(
        name=host.name,
        capacity=Resources(machinery.cpus, machinery.memory_mib, capacity_mib),
        version=", ".join(f"{name} {number}" for name, number in versions.items()),
        cpu_model=machinery.cpu_model,
        cpu_features=machinery.cpu_features,
        machine_types=machinery.machine_types,
        accelerator=machinery.acceleration,
        storage=storage_of(connection),
        guest_cpu_model=guest_model,
        guest_cpu_features=guest_features,
        numa=machinery.numa,
        devices=machinery.hardware.offered(connection),
        versions=versions,
        networks=reached_networks(host, _missing_bridges(connection, host)),
    )


def _missing_bridges(connection: libvirt.virConnect, host: LibvirtHost) -> frozenset[str]:
    """Return which bridges machines cannot be plugged into, of those that the host is to have.

    Not every libvirt can tell; what is not known to be missing counts as there.
    """
    bridges = {each.bridge for each in host.networks.values() if each.bridge}
    return frozenset(bridge for bridge in bridges if not _may_be_there(connection, bridge))


def _may_be_there(connection: libvirt.virConnect, bridge: str) -> bool:
    try:
        connection.interfaceLookupByName(bridge)
    except libvirt.libvirtError as error:
        return bool(code_of(error) != libvirt.VIR_ERR_NO_INTERFACE)
    return True


def _features(connection: libvirt.virConnect, cpu: ET.Element | None) -> tuple[str, ...]:
    if cpu is None:
        return ()
    flag = libvirt.VIR_CONNECT_BASELINE_CPU_EXPAND_FEATURES
    whole = ET.fromstring(connection.baselineCPU([ET.tostring(cpu, encoding="unicode")], flag))  # noqa: S314
    return tuple(sorted(each.get("name") or "" for each in whole.findall("feature")))


def _version(number: int) -> str:
    return f"{number // 1_000_000}.{number // 1000 % 1000}.{number % 1000}"
