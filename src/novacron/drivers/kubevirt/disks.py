"""How a machine's disks are: claimed, plugged, growing, or taken off and kept."""

from collections.abc import Iterable, Iterator
from typing import Any

from novacron.core.change import Change, How
from novacron.core.quantity import MIB, format_mib, mib
from novacron.core.volume import Access, Attachment, SeenVolume
from novacron.drivers.kubevirt.belongings import Belongings
from novacron.drivers.kubevirt.changes import DISKS, plugged
from novacron.drivers.kubevirt.names import ASKED, DISK, GROWN, VOLUME
from novacron.drivers.kubevirt.settings import Settings
from novacron.drivers.kubevirt.view import as_requested, by_name, template_of

__all__ = [
    "asked_mib",
    "claimed_mib",
    "growing",
    "in_order",
    "is_first",
    "seen_volume",
    "volume_id_of",
]

Object = dict[str, Any]

# Sizes are told in bytes, and a file system takes some for itself before the guest sees the rest.
FILE_SYSTEM_SHARE = 0.9
GROW_INSIDE = (
    "it grew while the guest ran: the guest's own file system grows when it is next started, or "
    "with growpart and resize2fs or xfs_growfs in it"
)


def is_first(claim: Object, vm: Object | None) -> bool:
    """Say whether a claim is that of the machine's first disk."""
    volumes: list[Object] = template_of(vm).get("volumes") or []
    disk = claim["metadata"]["labels"].get(DISK)
    return bool(volumes) and volumes[0]["name"] == disk


def in_order(claims: Iterable[Object], vm: Object | None) -> list[Object]:
    """Return claims as the machine lists its disks; those it does not have any more come last."""
    listed = list(by_name(as_requested(vm)["spec"]["volumes"])) if vm else []
    places = {name: place for place, name in enumerate(listed)}

    def rank(claim: Object) -> tuple[int, str]:
        name = claim["metadata"]["labels"].get(DISK, "")
        return places.get(name, len(listed)), name

    return sorted(claims, key=rank)


def volume_id_of(claim: Object) -> str:
    """Return what a volume is called by its owner."""
    annotations: dict[str, str] = claim["metadata"].get("annotations") or {}
    return annotations.get(VOLUME) or str(claim["metadata"]["name"])


def seen_volume(claim: Object, vm: Object | None, instance: Object | None) -> SeenVolume:
    """Return a disk as it is."""
    name = claim["metadata"]["labels"].get(DISK, "")
    attachment, note = _attachment(name, vm, instance)
    wanted, has = asked_mib(claim), None
    if attachment is Attachment.ATTACHED and instance is not None:
        has = _has_mib(claim, instance, name)
        if has is not None and has < wanted:
            attachment, note = Attachment.GROWING, _why_growing(claim)
        elif claim["metadata"].get("annotations", {}).get(GROWN) == instance["metadata"]["uid"]:
            note = GROW_INSIDE
    if claimed_mib(claim) > wanted:
        note = note or f"its claim is for {format_mib(claimed_mib(claim))}"
    return SeenVolume(
        name=name,
        size_mib=wanted,
        attachment=attachment,
        id=volume_id_of(claim),
        storage_class=claim["spec"].get("storageClassName"),
        has_mib=has if attachment is Attachment.GROWING else None,
        note=note,
        access=_access(claim),
        block=claim["spec"].get("volumeMode") == "Block",
        bus=_bus(name, vm),
        device=_told(instance, name).get("target") or None if instance else None,
    )


def _access(claim: Object) -> Access | None:
    modes: list[str] = claim["spec"].get("accessModes") or []
    return Access(modes[0]) if modes and modes[0] in {*Access} else None


def _bus(name: str, vm: Object | None) -> str | None:
    """Return how the guest is to see a disk, where it is to see it at all."""
    disks = by_name(template_of(vm).get("domain", {}).get("devices", {}).get("disks"))
    kinds = ((disks.get(name) or {}).get(kind) or {} for kind in ("disk", "cdrom", "lun"))
    return next((each["bus"] for each in kinds if "bus" in each), None)


def growing(has: Belongings, settings: Settings) -> Iterator[Change]:
    """Return which disks the guest does not see at their full size yet."""
    for claim in has.claims:
        seen = seen_volume(claim, has.machine, has.instance)
        if seen.attachment is not Attachment.GROWING or seen.has_mib is None:
            continue
        what = f"disk {seen.name} of {format_mib(seen.has_mib)} to {format_mib(seen.size_mib)}"
        why = "" if settings.disks_expandable else "the KubeVirt cluster has no ExpandDisks"
        yield Change(DISKS, what, How.RESTART if why else How.LIVE, why)


def _attachment(name: str, vm: Object | None, instance: Object | None) -> tuple[Attachment, str]:
    """Return how a disk is joined to its machine, and what is left to do about that."""
    planned = name in by_name(as_requested(vm)["spec"]["volumes"]) if vm else False
    if instance is None:
        return (Attachment.ATTACHED if planned else Attachment.DETACHED), ""
    told = _told(instance, name)
    there = name in by_name(instance["spec"].get("volumes"))
    pluggable = "hotplugVolume" in told or name in plugged(instance)
    if not planned:
        fixed = "the running guest has it until it is restarted"
        note = "the guest is to let go of it" if pluggable else fixed
        return Attachment.DETACHED, note if there or pluggable else ""
    if pluggable and told.get("phase") != "Ready":
        return Attachment.ATTACHING, str(told.get("message") or "")
    if there or (instance.get("status") or {}).get("phase") != "Running":
        return Attachment.ATTACHED, ""
    requested = name not in by_name(template_of(vm).get("volumes"))
    return (Attachment.ATTACHING if requested else Attachment.AWAITS_RESTART), ""


def _told(instance: Object, name: str) -> Object:
    told = by_name((instance.get("status") or {}).get("volumeStatus"))
    return told.get(name) or {}


def asked_mib(claim: Object) -> int:
    """Return how large a machine's owner wants a disk, which the claim may exceed.

    CDI claims more for the file system around an image, and KubeVirt as much as a snapshot takes
    when it goes back to one.
    """
    asked = (claim["metadata"].get("annotations") or {}).get(ASKED)
    return min(mib(asked), claimed_mib(claim)) if asked else claimed_mib(claim)


def claimed_mib(claim: Object) -> int:
    """Return how large a disk is claimed to be."""
    return mib(claim["spec"]["resources"]["requests"]["storage"])


def _has_mib(claim: Object, instance: Object, name: str) -> int | None:
    """Return how large the guest sees a disk; None where nobody can tell."""
    capacity = ((claim.get("status") or {}).get("capacity") or {}).get("storage")
    if capacity is not None and mib(capacity) < asked_mib(claim):
        return mib(capacity)
    size = _told(instance, name).get("size")
    if not size:
        return None
    shown = int(size) // MIB
    whole = claim["spec"].get("volumeMode") == "Block"
    least = asked_mib(claim) * (1 if whole else FILE_SYSTEM_SHARE)
    return asked_mib(claim) if shown >= least else shown


def _why_growing(claim: Object) -> str:
    capacity = ((claim.get("status") or {}).get("capacity") or {}).get("storage")
    if capacity is not None and mib(capacity) >= asked_mib(claim):
        return "the volume has grown and the guest does not see it yet"
    conditions = {each["type"] for each in (claim.get("status") or {}).get("conditions") or ()}
    if "FileSystemResizePending" in conditions:
        return "the volume has grown and its file system grows on the node"
    return "its storage makes the volume larger"
