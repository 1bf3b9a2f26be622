"""What a host's CPUs are to guests, and which memory is near to which of them. Blocks."""

from collections.abc import Iterable, Iterator
from xml.etree import ElementTree as ET

import libvirt

from novacron.core.host import NumaCell
from novacron.drivers.libvirt.domain import Accelerator

__all__ = ["guest_cpu", "numa_cells", "usable_models"]

ARCHITECTURE = "x86_64"
MACHINE = "q35"
HOST_MODEL = "cpu/mode[@name='host-model']"
NAMED_MODELS = "cpu/mode[@name='custom']/model"
KIB = {"KiB": 1, "MiB": 1024, "GiB": 1024 * 1024}
KIB_PER_MIB = 1024


def usable_models(connection: libvirt.virConnect, domain_type: str) -> frozenset[str]:
    """Return the names of the CPUs that guests can have on a host."""
    xml = connection.getDomainCapabilities(None, ARCHITECTURE, MACHINE, domain_type)
    models = ET.fromstring(xml).findall(NAMED_MODELS)  # noqa: S314 - libvirt's own
    return frozenset(each.text or "" for each in models if each.get("usable") != "no")


def guest_cpu(
    connection: libvirt.virConnect, accelerator: Accelerator
) -> tuple[str, tuple[str, ...]]:
    """Return model and features of the CPU that guests see.

    With host-model it is as much of the host's own CPU as QEMU can give, which libvirt tells.
    """
    kind = accelerator.domain_type
    if accelerator.cpu_model:
        cpu = ET.Element("cpu", mode="custom", match="exact")
        ET.SubElement(cpu, "model").text = accelerator.cpu_model
        return accelerator.cpu_model, _expanded(connection, kind, cpu)
    xml = connection.getDomainCapabilities(None, ARCHITECTURE, MACHINE, kind)
    mode = ET.fromstring(xml).find(HOST_MODEL)  # noqa: S314 - libvirt's own
    if mode is None or mode.get("supported") != "yes":
        return "", ()
    return mode.findtext("model") or "", _expanded(connection, kind, _as_cpu(mode))


def _expanded(connection: libvirt.virConnect, kind: str, cpu: ET.Element) -> tuple[str, ...]:
    """Return all features of a CPU, those included that its name stands for."""
    whole = connection.baselineHypervisorCPU(
        None,
        ARCHITECTURE,
        MACHINE,
        kind,
        [ET.tostring(cpu, encoding="unicode")],
        libvirt.VIR_CONNECT_BASELINE_CPU_EXPAND_FEATURES,
    )
    features = ET.fromstring(whole).findall("feature[@policy='require']")  # noqa: S314
    return tuple(sorted(each.get("name", "") for each in features))


def numa_cells(capabilities: ET.Element) -> tuple[NumaCell, ...]:
    """Read the host's topology from its capabilities."""
    return tuple(
        NumaCell(
            node=int(cell.get("id", "0")),
            cpus=_ranges(int(cpu.get("id", "0")) for cpu in cell.findall("cpus/cpu")),
            memory_mib=_mib(cell.find("memory")),
        )
        for cell in capabilities.findall("host/topology/cells/cell")
    )


def _as_cpu(mode: ET.Element) -> ET.Element:
    """Return the CPU that a mode stands for, as those calls want it that compare CPUs."""
    cpu = ET.Element("cpu", mode="custom", match="exact")
    cpu.extend(each for each in mode if each.tag in ("model", "vendor", "feature"))
    return cpu


def _mib(memory: ET.Element | None) -> int:
    if memory is None:
        return 0
    return int(memory.text or 0) * KIB.get(memory.get("unit", "KiB"), 1) // KIB_PER_MIB


def _ranges(numbers: Iterable[int]) -> str:
    """Return numbers as Linux writes sets of CPUs: 0-3,8."""

    def runs() -> Iterator[str]:
        first = last = None
        for number in [*sorted(numbers), None]:
            if first is not None and last is not None and number != last + 1:
                yield str(first) if first == last else f"{first}-{last}"
                first = None
            first, last = number if first is None else first, number

    return ",".join(runs())
