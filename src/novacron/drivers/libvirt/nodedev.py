"""One device of a host as libvirt describes it, and the names that people know it by.

Pure: from XML to values. Which devices may be handed to machines is decided in ``handover``.
"""

import re
from dataclasses import dataclass
from xml.etree import ElementTree as ET

__all__ = ["BRIDGE", "MediatedDevice", "PciDevice", "plain_name"]

BRIDGE = "bridge"
# By the longest beginning of the class that is listed here; the numbers are PCI's own.
KINDS = {
    "03": "gpu",
    "02": "nic",
    "0108": "nvme",
    "01": "storage",
    "12": "accelerator",
    "0b": "accelerator",
    "06": BRIDGE,
}
OTHER = "other"
# Where the full name says nothing, or the host has no list of names.
VENDORS = {
    0x10DE: "nvidia",
    0x1002: "amd",
    0x1022: "amd",
    0x8086: "intel",
    0x15B3: "mellanox",
    0x144D: "samsung",
    0x14E4: "broadcom",
    0x1D0F: "amazon",
    0x1AF4: "virtio",
}
LEGAL_FORM = re.compile(
    r"[, ]+(corporation|corp|inc|incorporated|ltd|limited|co|gmbh|ag)\b.*", re.I
)
MARKETED_AS = re.compile(r"\[([^\]]+)\]\s*$")


@dataclass(frozen=True, slots=True)
class PciDevice:
    """A PCI device; ``group`` are the addresses of all that can be handed over only together."""

    name: str
    address: str
    kind: str
    vendor: str
    model: str
    driver: str
    group: tuple[str, ...]
    numa_node: int | None
    mediated_types: dict[str, str]

    @classmethod
    def parse(cls, xml: str) -> "PciDevice":
        """Read libvirt's description."""
        device = ET.fromstring(xml)  # noqa: S314 - libvirt's own
        pci = device.find("capability[@type='pci']")
        assert pci is not None
        numa = pci.find("numa")
        types = pci.findall("capability[@type='mdev_types']/type")
        return cls(
            name=device.findtext("name") or "",
            address=_address(
                *(pci.findtext(name) for name in ("domain", "bus", "slot", "function"))
            ),
            kind=_kind(pci.findtext("class") or ""),
            vendor=_vendor(pci.find("vendor")),
            model=_model(pci.find("product")),
            driver=device.findtext("driver/name") or "",
            group=tuple(
                _address(*(each.get(name) for name in ("domain", "bus", "slot", "function")))
                for each in pci.findall("iommuGroup/address")
            ),
            numa_node=None if numa is None else int(numa.get("node") or 0),
            mediated_types={each.get("id", ""): each.findtext("name") or "" for each in types},
        )


@dataclass(frozen=True, slots=True)
class MediatedDevice:
    """A share of a device, made by the host's administrator; ``parent`` is libvirt's name."""

    uuid: str
    type: str
    parent: str

    @classmethod
    def parse(cls, xml: str) -> "MediatedDevice | None":
        """Read libvirt's description; None of one that is only defined and not there."""
        device = ET.fromstring(xml)  # noqa: S314 - libvirt's own
        kind = device.find("capability[@type='mdev']/type")
        uuid = device.findtext("capability[@type='mdev']/uuid")
        if kind is None or not uuid or not device.findtext("path"):
            return None
        return cls(uuid, kind.get("id") or "", device.findtext("parent") or "")


def plain_name(text: str) -> str:
    """Return a name as people type it: ``TU104GL [Tesla T4]`` is ``tesla-t4``."""
    marketed = MARKETED_AS.search(text)
    return re.sub(r"[^a-z0-9]+", "-", (marketed[1] if marketed else text).casefold()).strip("-")


def _address(*parts: str | None) -> str:
    domain, bus, slot, function = (int(part or "0", 0) for part in parts)
    return f"{domain:04x}:{bus:02x}:{slot:02x}.{function:x}"


def _kind(code: str) -> str:
    digits = code.removeprefix("0x")
    return next((KINDS[digits[:n]] for n in (4, 2) if digits[:n] in KINDS), OTHER)


def _vendor(vendor: ET.Element | None) -> str:
    if vendor is None:
        return ""
    number = int(vendor.get("id") or "0", 16)
    name = plain_name(LEGAL_FORM.sub("", vendor.text or ""))
    return VENDORS.get(number) or name or f"{number:04x}"


def _model(product: ET.Element | None) -> str:
    if product is None:
        return ""
    return plain_name(product.text or "") or (product.get("id") or "").removeprefix("0x")
