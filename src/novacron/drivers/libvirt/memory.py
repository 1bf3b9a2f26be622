"""Memory that a running guest can be given: as modules plugged into empty slots.

Not by a balloon: that would have every guest be started with all the memory it may ever get, and
keep it from taking that only for as long as it is polite.
"""

from xml.etree import ElementTree as ET

import libvirt

from novacron.drivers.libvirt.errors import code_of

__all__ = ["headroom", "plug_memory"]

MIB_IN_KIB = 1024
# A module is a block of memory to Linux, which takes only whole ones into use.
BLOCK_MIB = 128
SLOTS = 16
# Linux sets 64 MiB aside for devices as soon as memory may come above 4 GiB. A guest that has so
# much pays that anyway; for a small one it would be a large part of all it has.
SMALL_MIB = 1024
# No slot is left, or nothing of the headroom is.
FULL = frozenset({libvirt.VIR_ERR_OPERATION_FAILED, libvirt.VIR_ERR_CONFIG_UNSUPPORTED})


def headroom(size_mib: int, cpus: int, host_mib: int) -> tuple[str, str]:
    """Let a guest that is not small grow to twice its memory, if its host has that at all.

    Returns what is to be said of the domain, and what of its CPUs: libvirt wants all memory in one
    cell for that, with all the CPUs there may be.
    """
    most = min(2 * size_mib, host_mib)
    if size_mib < SMALL_MIB or most < size_mib + BLOCK_MIB:
        return "", ""
    limit = f'<maxMemory slots="{SLOTS}" unit="MiB">{most}</maxMemory>'
    cell = f'<cell id="0" cpus="0-{cpus - 1}" memory="{size_mib}" unit="MiB"/>'
    return limit, f"<numa>{cell}</numa>"


def plug_memory(handle: libvirt.virDomain, has_mib: int, wanted_mib: int) -> None:
    """Give a running guest more memory, if it can take that much; else it waits for a restart."""
    more = wanted_mib - has_mib
    if more <= 0 or more % BLOCK_MIB or not _has_room(handle, wanted_mib):
        return
    module = ET.Element("memory", model="dimm")
    target = ET.SubElement(module, "target")
    ET.SubElement(target, "size", unit="MiB").text = str(more)
    ET.SubElement(target, "node").text = "0"
    try:
        xml = ET.tostring(module, encoding="unicode")
        handle.attachDeviceFlags(xml, libvirt.VIR_DOMAIN_AFFECT_LIVE)
    except libvirt.libvirtError as error:
        if code_of(error) not in FULL:
            raise


def _has_room(handle: libvirt.virDomain, wanted_mib: int) -> bool:
    live = ET.fromstring(handle.XMLDesc())  # noqa: S314 - libvirt's own
    most = int(live.findtext("maxMemory") or 0) // MIB_IN_KIB
    return wanted_mib <= most and len(live.findall("devices/memory")) < SLOTS
