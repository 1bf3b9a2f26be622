"""Virtual hardware: what a Machine asks for."""

from typing import Any

from novacron.families.viti.values import Hardware

__all__ = ["hardware_of"]

Object = dict[str, Any]


def hardware_of(spec: Object) -> Hardware:
    """Return the virtual hardware that a machine asks for."""
    domain = spec.get("domain") or {}
    features = domain.get("features") or {}
    bootloader = (domain.get("firmware") or {}).get("bootloader") or {}
    return Hardware(
        machine_type=(domain.get("machine") or {}).get("type"),
        acpi=features.get("acpi"),
        apic=features.get("apic"),
        hyperv=features.get("hyperv", False),
        efi=bootloader.get("efi", False),
        secure_boot=bootloader.get("secureBoot", False),
    )
