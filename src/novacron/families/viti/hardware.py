"""Virtual hardware: what a Machine asks for, and whether a KubeVirt cluster has it."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

from novacron.families.viti.values import Hardware

__all__ = ["USUAL_MACHINES", "hardware_of", "why_no_such_machine"]

Object = dict[str, Any]

# What KubeVirt allows on amd64 unless its configuration says otherwise.
USUAL_MACHINES = ("q35*", "pc-q35*")


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


def why_no_such_machine(
    machine_type: str | None, allowed: Sequence[str] = USUAL_MACHINES
) -> str | None:
    """Return why a cluster that allows these types (``*`` stands for anything) has no such one."""
    if machine_type is None or any(fnmatchcase(machine_type, each) for each in allowed):
        return None
    return (
        f"this KubeVirt cluster allows no machine of type {machine_type}, only "
        f"{', '.join(allowed)}: leave spec.domain.machine.type out or set it to q35, or have "
        "emulatedMachines extended in the KubeVirt configuration"
    )
