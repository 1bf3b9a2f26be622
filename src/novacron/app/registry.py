"""Which API families there are, and what each brings: kinds, manifests, rights."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from novacron.controllers.ports import MachineKind
from novacron.crd import CustomResource, KindInfo
from novacron.crd.manifest import manifest
from novacron.families import novacron
from novacron.families.novacron.translate import HostKind, VirtualMachineKind
from novacron.runtime.resource import Resource

__all__ = ["FAMILIES", "HOSTS", "HOST_KIND", "Family", "chosen", "crds", "resource_of"]

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Family:
    """One API group: its kinds with all their versions, and those that declare machines."""

    name: str
    resources: tuple[tuple[type[CustomResource], ...], ...]
    machines: tuple[tuple[Resource, MachineKind], ...]


def resource_of(kind: KindInfo) -> Resource:
    """Return a kind as the API server addresses it."""
    return Resource(kind.group, kind.version, kind.plural, kind.kind, kind.namespaced)


VIRTUAL_MACHINES = resource_of(novacron.VirtualMachine.__kind__)
# Machines of every family run on the same hosts, so this kind is served with each of them.
HOSTS = resource_of(novacron.Host.__kind__)
HOST_KIND = HostKind()

FAMILIES = {
    "novacron": Family("novacron", novacron.RESOURCES, ((VIRTUAL_MACHINES, VirtualMachineKind()),)),
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


def crds(families: Collection[str]) -> list[Manifest]:
    """Return the definitions of all kinds of these families."""
    hosts: tuple[type[CustomResource], ...] = (novacron.Host,)
    served = {
        versions[0].__kind__.full_name: versions
        for family in chosen(families)
        for versions in (*family.resources, hosts)
    }
    return [manifest(*versions) for versions in served.values()]
