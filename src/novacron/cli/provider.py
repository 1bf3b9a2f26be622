"""What runs the machines of a local cluster: QEMU under a libvirt of our own, or a simulation."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from novacron.cli.display import Display
from novacron.cli.failure import Failure
from novacron.cli.host import host_body
from novacron.localcluster.doctor import Finding
from novacron.localcluster.hypervisor import SHARED_POOL, Arrangement, Hypervisor
from novacron.runtime.resource import Object
from novacron.workplace.files import write_private
from novacron.workplace.home import Home
from novacron.workplace.packages import Package

__all__ = ["FIRST_HOST", "Provider", "chosen", "remember"]

FIRST_HOST = "local"
CAPACITY = {"cpu": 16, "memory": "64Gi", "disk": "1Ti"}
RECORD = "provider"
WELCOMED = ("cluster/welcomed", "welcomed-*")


class Provider(Protocol):
    """Brings up what machines run on."""

    @property
    def name(self) -> str:
        """What it is called on the command line."""

    def missing(self) -> list[Package]:
        """Return the system packages that it needs and this machine lacks."""

    def prepare(self, display: Display) -> bool:
        """Bring it up; say whether it had to be started."""

    def operator_flags(self) -> Sequence[str]:
        """Return what the operator has to be told of it."""

    def hosts(self) -> Sequence[Object]:
        """Return the Hosts that stand for it."""

    def examine(self) -> Iterable[Finding]:
        """Look at what it needs of this machine."""


@dataclass(frozen=True, slots=True)
class Simulation:
    """Hosts that exist only in memory."""

    home: Home
    count: int = 1
    name: str = "simulation"

    def missing(self) -> list[Package]:
        """Return nothing: it needs nothing."""
        return []

    def prepare(self, display: Display) -> bool:  # noqa: ARG002 - there is nothing to show
        """Do nothing: the operator simulates them itself."""
        return False

    def operator_flags(self) -> Sequence[str]:
        """Return nothing."""
        return ()

    def hosts(self) -> Sequence[Object]:
        """Return hosts with room for much."""
        return [host_body(_name(number), self.name, CAPACITY) for number in _numbers(self.count)]

    def examine(self) -> Iterable[Finding]:
        """Find nothing: it needs nothing."""
        return ()


@dataclass(frozen=True, slots=True)
class Libvirt:
    """Real guests on this machine."""

    home: Home
    count: int = 1
    name: str = "libvirt"

    def missing(self) -> list[Package]:
        """Return what guests and their images need."""
        from novacron.guests.packages import missing_for_image  # noqa: PLC0415
        from novacron.localcluster.hypervisor.packages import missing_for_hypervisor  # noqa: PLC0415

        found = (*missing_for_hypervisor(), *missing_for_image())
        return list({package.name: package for package in found}.values())

    def prepare(self, display: Display) -> bool:
        """Have the binding, the built-in image and the hypervisor."""
        from novacron.guests.builtin import BUILTIN  # noqa: PLC0415
        from novacron.localcluster.hypervisor import binding  # noqa: PLC0415

        if not binding.present():
            with display.step("Python binding of libvirt"):
                binding.install()
        with display.step("Guest image") as progress:
            for name, make in BUILTIN.items():
                _link(self._images / f"{name}.qcow2", make(self.home.cache, progress))
        with display.step("Hypervisor" if self.count == 1 else f"{self.count} hypervisors"):
            return Arrangement(self.home.state).start(self.count)

    def operator_flags(self) -> Sequence[str]:
        """Return where the built-in images are."""
        return (f"--images-directory={self._images}",)

    def hosts(self) -> Sequence[Object]:
        """Return this machine as a host, or as several."""
        hypervisors = Arrangement(self.home.state).hosts
        return [self._host(number, each) for number, each in enumerate(hypervisors, start=1)]

    def _host(self, number: int, hypervisor: Hypervisor) -> Object:
        body = host_body(_name(number), self.name, {})
        settings: Object = {"network": hypervisor.network}
        if peer := Arrangement(self.home.state).peer_uri(number):
            settings["migration"] = {"uri": peer, "tls": True}
            settings["storageClasses"] = [
                {"name": SHARED_POOL, "pool": SHARED_POOL, "shared": True},
            ]
        if hypervisor.pool_path:
            settings["storagePath"] = hypervisor.pool_path
        body["spec"] |= {"endpoint": hypervisor.uri, "libvirt": settings}
        return body

    def examine(self) -> Iterable[Finding]:
        """Look at packages, rights and the CPU."""
        from novacron.localcluster.hypervisor.doctor import examine_hypervisor  # noqa: PLC0415

        return examine_hypervisor()

    @property
    def _images(self) -> Path:
        return self.home.state / "images"


def chosen(home: Home, wanted: str | None, hosts: int | None = None) -> Provider:
    """Return the provider of this cluster, which stays what it was set up with."""
    before = _remembered(home)
    if before and wanted and before != wanted:
        raise Failure(
            f"this cluster was set up with --provider {before}; remove it first with "
            f"`novacron purge`, or point NOVACRON_HOME elsewhere"
        )
    name = wanted or before or "libvirt"
    if name == "simulation":
        return Simulation(home, hosts or 1)
    arrangement = Arrangement(home.state)
    arrangement.require(hosts or arrangement.count)
    return Libvirt(home, hosts or arrangement.count)


def remember(home: Home, provider: Provider) -> None:
    """Note what the cluster was set up with, before anything of it is in the cluster."""
    if _remembered(home) != provider.name:
        write_private(home.state / RECORD, provider.name)


def _remembered(home: Home) -> str | None:
    record = home.state / RECORD
    if record.exists():
        return record.read_text()
    # Clusters from before there was a choice.
    old = any(any(home.state.glob(pattern)) for pattern in WELCOMED)
    return "simulation" if old else None


def _numbers(count: int) -> range:
    return range(1, count + 1)


def _name(number: int) -> str:
    return FIRST_HOST if number == 1 else f"{FIRST_HOST}-{number}"


def _link(path: Path, image: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_symlink() or path.readlink() != image:
        path.unlink(missing_ok=True)
        path.symlink_to(image)
