"""What a machine's virtual hardware is to be, beyond how much of it there is."""

from dataclasses import dataclass

__all__ = ["STANDARD", "Hardware", "Topology"]


@dataclass(frozen=True, slots=True)
class Topology:
    """How a machine's CPUs are arranged."""

    sockets: int = 1
    cores: int = 1
    threads: int = 1

    @property
    def vcpus(self) -> int:
        """How many CPUs that is."""
        return self.sockets * self.cores * self.threads


@dataclass(frozen=True, slots=True)
class Hardware:
    """What was asked for; None and empty leave it to the hypervisor.

    ``boot_order`` has the words disk, network and cdrom, the first to be tried first.
    """

    topology: Topology | None = None
    machine_type: str | None = None
    efi: bool = False
    secure_boot: bool = False
    acpi: bool | None = None
    apic: bool | None = None
    hyperv: bool = False
    boot_order: tuple[str, ...] = ()


STANDARD = Hardware()
