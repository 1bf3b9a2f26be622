"""What volumes of ``novacron.io/v1alpha1`` mean to the core, and back."""

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

from novacron.core.offer import Offer, OfferKind
from novacron.core.quantity import format_mib, mib
from novacron.core.resources import Resources, Share
from novacron.core.volume import Access, Attachment, Hold, KeptVolume, Reclaim, SeenVolume, Volume

__all__ = [
    "asked",
    "awaiting_restart",
    "classes_needed",
    "classes_of",
    "listed",
    "volume_of",
    "volumes_held",
    "written_kept",
    "written_volumes",
]

Object = dict[str, Any]

MOST_TOLD = 100
NOTHING = Resources()


def volume_of(written: Object) -> Volume:
    """Return a volume as it is asked for."""
    return Volume(
        name=written["name"],
        size_mib=mib(written["size"]),
        storage_class=written.get("storageClass"),
        access=Access(written.get("accessMode", Access.ONCE)),
        reclaim=Reclaim(written.get("reclaimPolicy", Reclaim.RETAIN)),
        existing=written.get("existing"),
    )


def classes_needed(volumes: Iterable[Volume]) -> frozenset[Offer]:
    """Return which storage classes a host must have for volumes."""
    return frozenset(
        Offer(OfferKind.STORAGE, _class(volume.storage_class or "", volume.access is Access.MANY))
        for volume in volumes
        if volume.storage_class or volume.access is Access.MANY
    )


def classes_of(settings: Mapping[str, Any]) -> Iterator[Offer]:
    """Return the storage classes a host has, by the settings of its driver."""
    for each in settings.get("storageClasses") or ():
        for shared in {False, each.get("shared", False)}:
            yield Offer(OfferKind.STORAGE, _class(each["name"], shared))


def _class(name: str, shared: bool) -> str:  # noqa: FBT001 - what a class is known by
    return f"{name} that is shared: true".strip() if shared else name


def written_volumes(seen: Iterable[SeenVolume]) -> list[Object] | None:
    """Return the volumes of a machine as its status has them."""
    return [
        {
            "name": volume.name,
            "id": volume.id,
            "size": format_mib(volume.size_mib),
            **({"storageClass": volume.storage_class} if volume.storage_class else {}),
            "state": volume.attachment.value,
        }
        for volume in seen
    ] or None


def volumes_held(obj: Mapping[str, Any]) -> Mapping[str, Hold]:
    """Return all volumes that an object asks for, or that its machine has or had, by their ids."""
    metadata, status = obj["metadata"], obj.get("status") or {}
    wanted = [volume_of(each) for each in obj["spec"]["template"]["spec"].get("volumes") or ()]
    asked = {each.id_for(metadata["name"], metadata["uid"]): each.access for each in wanted}
    held = dict.fromkeys(asked, Hold.ASKS)
    for each in status.get("volumes") or ():
        if each.get("state") == Attachment.DETACHED:
            held.setdefault(each["id"], Hold.HAD)
        else:
            reads = asked.get(each["id"]) is Access.READ_ONLY
            held[each["id"]] = Hold.READS if reads else Hold.WRITES
    return held


def awaiting_restart(status: Mapping[str, Any]) -> frozenset[str | None]:
    """Return the storage classes of volumes that a running guest does not have yet."""
    return frozenset(
        each.get("storageClass")
        for each in status.get("volumes") or ()
        if each.get("state") == Attachment.AWAITS_RESTART
    )


def listed(status: Mapping[str, Any], but: Container[str] = ()) -> Resources:
    """Return what the volumes of a status take of their host, but for some, by their ids.

    Those count too that the machine has no more or is to have no more.
    """
    found = [each for each in status.get("volumes") or () if each["id"] not in but]
    if not found:
        return NOTHING
    return _taken((each.get("storageClass"), each["id"], mib(each["size"])) for each in found)


def asked(volumes: Iterable[Volume], ids: Iterable[str]) -> Resources:
    """Return what volumes take of their host; each has its id."""
    pairs = zip(volumes, ids, strict=True)
    return _taken((volume.storage_class, one, volume.size_mib) for volume, one in pairs)


def _taken(volumes: Iterable[tuple[str | None, str, int]]) -> Resources:
    every = tuple(volumes)
    own_mib = sum(size_mib for of, _, size_mib in every if not of)
    shares = sorted(Share(of, one, size_mib) for of, one, size_mib in every if of)
    return Resources(disk_mib=own_mib, shares=tuple(shares))


def written_kept(kept: tuple[KeptVolume, ...]) -> list[Object] | None:
    """Return volumes without a machine as a host's status has them."""
    return [
        {
            "namespace": volume.namespace,
            "id": volume.id,
            "size": format_mib(volume.size_mib),
            **({"storageClass": volume.storage_class} if volume.storage_class else {}),
        }
        for volume in kept[:MOST_TOLD]
    ] or None
