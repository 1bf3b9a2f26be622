"""What cannot become of a claim, said before anything is done about it."""

from typing import Any

from novacron.core.errors import Busy, Rejected, Unsupported
from novacron.core.quantity import format_mib
from novacron.core.volume import Volume
from novacron.drivers.kubevirt.disks import asked_mib

__all__ = ["USUAL", "require_possible", "require_same", "require_staying"]

Object = dict[str, Any]

# What the spec's templates call the class that the cluster has marked as its own default.
USUAL = "default"


def require_possible(disk: Volume, claim: Object | None) -> None:
    """Raise what is wrong with a disk before anything is done about any."""
    if disk.existing is not None:
        raise Unsupported(
            f"disk {disk.name} is to be volume {disk.existing}, which was another machine's: that "
            "cannot be done on KubeVirt yet; leave it out, or copy the data"
        )
    if claim is not None and disk.size_mib < asked_mib(claim):
        raise Rejected(
            f"disk {disk.name} has {format_mib(asked_mib(claim))} and never shrinks: ask for at "
            "least that",
            reason="CannotShrink",
        )


def require_same(claim: Object, disk: Volume) -> None:
    """Refuse what no claim can become; the API refuses it where a template did not change it."""
    spec = claim["spec"]
    wanted: dict[str, str | None] = {
        "storage class": None if disk.storage_class == USUAL else disk.storage_class,
        "access mode": disk.access.value if disk.access else None,
        "volume mode": None if disk.block is None else ("Block" if disk.block else "Filesystem"),
    }
    has = {
        "storage class": spec.get("storageClassName"),
        "access mode": next(iter(spec.get("accessModes") or ()), None),
        "volume mode": spec.get("volumeMode", "Filesystem"),
    }
    for name, value in wanted.items():
        if value is not None and has[name] is not None and value != has[name]:
            raise Rejected(
                f"the {name} of disk {disk.name} is {has[name]} and cannot become {value}: take "
                "the disk off the machine, which keeps its data, and add one with another name",
                reason="DiskFixed",
            )


def require_staying(claim: Object) -> None:
    """Raise Busy where a claim goes: one of its name can be made only when it is gone."""
    if "deletionTimestamp" in claim["metadata"]:
        raise Busy(f"PersistentVolumeClaim {claim['metadata']['name']} is just being deleted")
