"""The virtual hardware of a Machine: chipset, features, firmware."""

from typing import Annotated

from pydantic import Field

from novacron.crd import Model, Rule

__all__ = ["Domain"]


class DomainMachine(Model):
    """The chipset."""

    type: (
        Annotated[
            str,
            Field(min_length=1, max_length=63),
            Rule(
                "self.matches('^[a-z0-9]([-a-z0-9._]*[a-z0-9])?$')",
                "must be a machine type such as q35 or pc-q35",
            ),
        ]
        | None
    ) = None
    """Such as q35 or pc-q35; which ones there are is a setting of the KubeVirt cluster, and without
    one there is no pc-i440fx. Without it, the cluster's own."""


class Features(Model):
    """What the hardware offers."""

    acpi: bool | None = None
    """Whether there is ACPI; without it, KubeVirt's own choice."""
    apic: bool | None = None
    """Whether there is an APIC; without it, KubeVirt's own choice."""
    hyperv: bool | None = None
    """Whether Windows finds a Hyper-V it knows and is quicker for it; without it, no."""


class Bootloader(Model):
    """What starts the guest."""

    __rules__ = (
        Rule(
            "!self.?secureBoot.orValue(false) || self.?efi.orValue(false)",
            "secureBoot needs EFI: set efi to true beside it",
            field_path=".efi",
            reason="FieldValueRequired",
        ),
    )

    efi: bool | None = None
    """Whether it is EFI; without it, a BIOS."""
    secure_boot: bool | None = None
    """Whether EFI starts only what is signed."""


class Firmware(Model):
    """What comes before the guest."""

    bootloader: Bootloader | None = None
    """What starts the guest."""


class Domain(Model):
    """The virtual hardware."""

    __rules__ = (
        Rule(
            "!self.?firmware.bootloader.secureBoot.orValue(false)"
            " || !has(self.machine) || !has(self.machine.type)"
            " || !self.machine.type.contains('i440fx')",
            "secureBoot needs the q35 chipset: set machine.type to q35 or leave it out",
            field_path=".machine.type",
        ),
    )

    machine: DomainMachine | None = None
    """The chipset."""
    features: Features | None = None
    """What it offers."""
    firmware: Firmware | None = None
    """What comes before the guest."""
