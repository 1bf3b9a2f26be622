"""How large a Machine is: the template first, then the overrides field by field, then the disks.

``template`` looks among the built-in sizes first, so that what the specification promises holds on
every cluster; upstream's ``machineClass`` looks among the MachineClasses first.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from novacron.core.errors import Rejected
from novacron.core.quantity import format_mib, mib
from novacron.families.viti.disks import merged_disks
from novacron.families.viti.templates import BUILT_IN, DEFAULT_CLASS, ROOT
from novacron.families.viti.values import Cpu, Size

__all__ = ["TEMPLATE_NOT_FOUND", "Base", "base_of", "size_of", "sized"]

Object = dict[str, Any]
Classes = Mapping[str, Object]

TEMPLATE_NOT_FOUND = "TemplateNotFound"
# What upstream gives a machine whose class has no disks and that lists none.
ONLY_DISK: Object = {"name": ROOT, "size": "10Gi"}
PROVIDER = "kubevirt"


@dataclass(frozen=True, slots=True)
class Base:
    """What a template gives; ``cpu`` and ``memory`` are absent where there is no template."""

    name: str
    cpu: Mapping[str, int]
    memory: str | None
    disks: tuple[Object, ...]
    least: str | None = None
    most: str | None = None


def size_of(spec: Object, classes: Classes, *, new: bool = True) -> Size:
    """Return how large the machine is; ``classes`` are the specs of MachineClasses by name.

    A class that was disabled is refused to new machines only.
    """
    return sized(spec, base_of(spec, classes, new=new))


def sized(spec: Object, base: Base) -> Size:
    """Return how large a machine is whose template gives it this."""
    cpu, memory = {**base.cpu, **_own_cpu(spec)}, _own_memory(spec) or base.memory
    if not cpu or memory is None:
        raise Rejected(
            "nothing says how large the machine is: set spec.template to small, medium or large, "
            "or set spec.resources.cpu.cores and spec.resources.memory.size",
            reason=TEMPLATE_NOT_FOUND,
        )
    _within(base, mib(memory))
    own = tuple(spec.get("disks") or ())
    disks = merged_disks(base.disks, own) or merged_disks((ONLY_DISK,), ())
    return Size(base.name, Cpu(**cpu), mib(memory), disks)


def base_of(spec: Object, classes: Classes, *, new: bool = True) -> Base:
    """Return what a machine's template gives it, as that is now."""
    if name := spec.get("template"):
        if name in BUILT_IN:
            return _built_in(name)
        return _of_class(name, classes.get(name), new=new)
    if name := spec.get("machineClass"):
        if name in classes or name not in BUILT_IN:
            return _of_class(name, classes.get(name), new=new)
        return _built_in(name)
    return _default(classes)


def _built_in(name: str) -> Base:
    template = BUILT_IN[name]
    root = {"name": ROOT, "size": template.root_disk, "storageClass": DEFAULT_CLASS}
    return Base(name, {"cores": template.cores}, template.memory, (root,))


def _of_class(name: str, found: Object | None, *, new: bool) -> Base:
    if found is None:
        raise Rejected(
            f"there is no template {name}: use small, medium or large, or create a MachineClass "
            "of this name",
            reason=TEMPLATE_NOT_FOUND,
        )
    if why := _why_not(found, new=new):
        raise Rejected(f"MachineClass {name} {why}", reason=TEMPLATE_NOT_FOUND)
    # Zero is upstream's way to say nothing.
    cpu = {key: value for key, value in found["cpu"].items() if value}
    memory, disks = found["memory"], tuple(found.get("disks") or ())
    least, most = memory.get("minQuantity"), memory.get("maxQuantity")
    return Base(name, cpu, memory["quantity"], disks, least, most)


def _why_not(found: Object, *, new: bool) -> str | None:
    """Return why a class cannot be used here, as the rest of a sentence."""
    providers = found.get("machineProviders")
    if providers and PROVIDER not in providers:
        return f"is for {' and '.join(providers)} only: choose another one"
    if (found.get("gpu") or {}).get("cores"):
        return "has a GPU, which machines cannot be given here yet: choose another one"
    if new and not found.get("enabled", True):
        return "is disabled: choose another one, or set its spec.enabled to true"
    return None


def _default(classes: Classes) -> Base:
    """Return the default class, or nothing: then the machine has to say everything itself."""
    names = sorted(
        name
        for name, each in classes.items()
        if each.get("default") and not _why_not(each, new=True)
    )
    if len(names) > 1:
        raise Rejected(
            f"MachineClasses {', '.join(names)} are all the default: set spec.template, or leave "
            "spec.default to one of them",
            reason=TEMPLATE_NOT_FOUND,
        )
    return _of_class(names[0], classes[names[0]], new=True) if names else Base("", {}, None, ())


def _own_cpu(spec: Object) -> dict[str, int]:
    """Return what the machine says of CPUs itself, in either word."""
    said = (spec.get("resources") or {}).get("cpu") or {}
    flat = spec.get("cpu") or {}
    upstream = {"threads": flat.get("threadsPerCore")} | {
        name: flat.get(name) for name in ("cores", "sockets")
    }
    return {name: value for name, value in (upstream | said).items() if value is not None}


def _own_memory(spec: Object) -> str | None:
    said = ((spec.get("resources") or {}).get("memory") or {}).get("size")
    flat = spec.get("memory")
    return said if said is not None else None if flat is None else str(flat)


def _within(base: Base, memory_mib: int) -> None:
    if base.least is not None and memory_mib < mib(base.least):
        raise Rejected(
            f"{format_mib(memory_mib)} of memory is less than MachineClass {base.name} allows: ask "
            f"for at least {base.least}",
            reason="MemoryOutOfRange",
        )
    if base.most is not None and memory_mib > mib(base.most):
        raise Rejected(
            f"{format_mib(memory_mib)} of memory is more than MachineClass {base.name} allows: ask "
            f"for at most {base.most}",
            reason="MemoryOutOfRange",
        )
