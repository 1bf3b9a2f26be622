"""A Machine with everything decided: no template, no default and no second word for a thing."""

from dataclasses import dataclass

from novacron.core.image import Medium

__all__ = ["Cpu", "Disk", "Hardware", "Nic", "Resolved", "Size", "Topology"]

VIRTIO = "virtio"


@dataclass(frozen=True, slots=True)
class Topology:
    """CPUs as KubeVirt is asked for them."""

    sockets: int
    cores: int
    threads: int


@dataclass(frozen=True, slots=True)
class Cpu:
    """CPUs as a machine says them."""

    cores: int = 1
    threads: int = 1
    sockets: int = 1

    @property
    def total(self) -> int:
        """How many CPUs the guest has."""
        return self.cores * self.threads * self.sockets

    @property
    def topology(self) -> Topology:
        """Sockets are all that KubeVirt can add to a running guest: plain cores become sockets.

        Whoever asks for several sockets or threads means the topology, and gets it as it is.
        """
        if self.threads == 1 and self.sockets == 1:
            return Topology(self.cores, 1, 1)
        return Topology(self.sockets, self.cores, self.threads)


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk; modes of None are for the storage to choose, a class of None is the default one."""

    name: str
    size_mib: int
    storage_class: str | None = None
    access_mode: str | None = None
    volume_mode: str | None = None
    bus: str = VIRTIO
    boot: bool = False
    retain: bool = False


@dataclass(frozen=True, slots=True)
class Size:
    """What template and overrides come to; ``template`` is the name it goes by, if any."""

    template: str
    cpu: Cpu
    memory_mib: int
    disks: tuple[Disk, ...]


@dataclass(frozen=True, slots=True)
class Nic:
    """A network interface; a network of None is the pod network."""

    name: str
    network: str | None
    mac: str
    model: str = VIRTIO


@dataclass(frozen=True, slots=True)
class Hardware:
    """The virtual hardware; None leaves the choice to KubeVirt."""

    machine_type: str | None = None
    acpi: bool | None = None
    apic: bool | None = None
    hyperv: bool = False
    efi: bool = False
    secure_boot: bool = False


@dataclass(frozen=True, slots=True)
class Resolved:
    """All that a driver has to be asked for; ``ejected`` says that the install medium is out."""

    size: Size
    nics: tuple[Nic, ...]
    hardware: Hardware = Hardware()
    boot_order: tuple[str, ...] = ()
    image: Medium | None = None
    iso: Medium | None = None
    ejected: bool = False
