"""A Machine as its owner wrote it, with everything decided that its own words can decide."""

from collections.abc import Iterator, Mapping
from typing import Any

from novacron.families.viti.class_pin import base_for
from novacron.families.viti.hardware import hardware_of
from novacron.families.viti.media import ejected, image_of, iso_of
from novacron.families.viti.nics import nics_of
from novacron.families.viti.sizing import sized
from novacron.families.viti.values import Resolved

__all__ = ["is_ours", "resolve", "without_effect"]

Object = dict[str, Any]

# Upstream's fields that nothing here acts on, by where they are below spec.
NO_EFFECT = (
    "name",
    "machineType",
    "providerConfig",
    "tags",
    "securityGroups",
    "monitoring",
    "backup",
    "network.vpc",
    "network.subnet",
    "network.assignPublicIP",
    "network.privateIP",
    "network.publicIP",
    "os.imageFamily",
)
NO_EFFECT_ON_DISKS = ("device", "iops", "throughput")
NO_EFFECT_ON_INTERFACES = ("subnet", "securityGroups", "primary")


def is_ours(spec: Object) -> bool:
    """Say whether the machine is for KubeVirt; others are looked after by somebody else."""
    return str(spec.get("provider", "kubevirt")) == "kubevirt"


def resolve(obj: Object, classes: Mapping[str, Object], *, new: bool = True) -> Resolved:
    """Return the machine with everything decided, or raise Rejected with what to do about it.

    ``classes`` are the specs of all MachineClasses by name.
    """
    spec = obj["spec"]
    return Resolved(
        size=sized(spec, base_for(obj, classes, new=new)),
        nics=nics_of(spec, obj["metadata"]["uid"]),
        hardware=hardware_of(spec),
        boot_order=tuple(spec.get("bootOrder") or ()),
        image=image_of(spec),
        iso=iso_of(obj),
        ejected=ejected(obj),
    )


def without_effect(spec: Object) -> Iterator[str]:
    """Yield the fields that were given and change nothing; false and empty ones say nothing."""
    for path in NO_EFFECT:
        parent, _, name = path.rpartition(".")
        if ((spec.get(parent) or {}) if parent else spec).get(name):
            yield path
    yield from _in_list(spec.get("disks"), "disks", NO_EFFECT_ON_DISKS)
    interfaces = (spec.get("network") or {}).get("interfaces")
    yield from _in_list(interfaces, "network.interfaces", NO_EFFECT_ON_INTERFACES)


def _in_list(items: list[Object] | None, path: str, names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        if any(each.get(name) for each in items or ()):
            yield f"{path}[].{name}"
