"""Which API families there are, and which of their kinds declare machines.

Only names and translations: the types behind them are in ``definitions``, which a running
operator never loads. What a family brings along is loaded when it is served.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from novacron.controllers.ports import MachineKind, ReferredKind
from novacron.families.novacron.host_translate import HostKind
from novacron.families.seal import Seal
from novacron.runtime.resource import Resource

__all__ = ["FAMILIES", "HOSTS", "HOST_KIND", "VIRTUAL_MACHINES", "Family", "chosen"]

VIRTUAL_MACHINES = Resource("novacron.io", "v1alpha1", "virtualmachines", "VirtualMachine")
VITI = "vitistack.io"
VITI_MACHINES = Resource(VITI, "v1alpha1", "machines", "Machine")
VITI_NETWORKS = Resource(VITI, "v1alpha1", "networkconfigurations", "NetworkConfiguration")
# Machines of every family run on the same hosts, so this kind is served with each of them.
HOSTS = Resource("novacron.io", "v1alpha1", "hosts", "Host", namespaced=False)
HOST_KIND = HostKind()


@dataclass(frozen=True, slots=True)
class Family:
    """One API group: the module of its kinds, those that declare machines, and what those need.

    ``reported`` are those of the latter that say in their status who needs them. Who reads machines
    has a seal, which shows what we wrote ourselves.
    """

    name: str
    kinds: str
    machines: tuple[tuple[Resource, Callable[[Seal], MachineKind]], ...]
    related: tuple[Resource, ...] = ()
    reported: tuple[tuple[Resource, Callable[[], ReferredKind]], ...] = ()
    made_in_kubevirt: bool = False


def _virtual_machine(seal: Seal) -> MachineKind:
    from novacron.families.novacron.translate import VirtualMachineKind  # noqa: PLC0415

    return VirtualMachineKind(seal)


def _viti_machine(_: Seal) -> MachineKind:
    # What its records say anybody may ask for who may write them.
    from novacron.families.viti.translate import MachineKind as Machine  # noqa: PLC0415

    return Machine()


def _viti_network() -> ReferredKind:
    from novacron.families.viti.network_status import NetworkKind  # noqa: PLC0415

    return NetworkKind()


FAMILIES = {
    "novacron": Family(
        "novacron",
        "novacron.families.novacron.kinds",
        ((VIRTUAL_MACHINES, _virtual_machine),),
    ),
    "viti": Family(
        "viti",
        "novacron.families.viti.kinds",
        ((VITI_MACHINES, _viti_machine),),
        (
            VITI_NETWORKS,
            Resource(VITI, "v1alpha1", "machineclasses", "MachineClass", namespaced=False),
        ),
        ((VITI_NETWORKS, _viti_network),),
        made_in_kubevirt=True,
    ),
}


def chosen(names: Iterable[str]) -> tuple[Family, ...]:
    """Return the families of these names; ``all`` stands for every one."""
    wanted = [name.strip() for name in names if name.strip()] or ["novacron"]
    if "all" in wanted:
        return tuple(FAMILIES.values())
    unknown = [name for name in wanted if name not in FAMILIES]
    if unknown:
        known = ", ".join((*FAMILIES, "all"))
        raise ValueError(f"no API family is called {', '.join(unknown)}; there are: {known}")
    return tuple(FAMILIES[name] for name in dict.fromkeys(wanted))
