"""Image and install medium of a Machine, in one word each, and when a medium is out."""

from typing import Any

from novacron.core.image import Medium
from novacron.core.quantity import mib
from novacron.families.viti.marks import BOOT_SOURCE, BOOT_SOURCE_TYPE, CDROM_EJECTED, OS_INSTALLED

__all__ = ["ejected", "image_of", "iso_of"]

Object = dict[str, Any]

_SAID = "true"


def image_of(spec: Object) -> Medium | None:
    """Return what the disk to boot from is filled with."""
    return _medium(spec["image"]) if spec.get("image") else None


def iso_of(obj: Object) -> Medium | None:
    """Return the install medium, also where it was ejected."""
    spec, annotations = obj["spec"], obj["metadata"].get("annotations") or {}
    if spec.get("iso"):
        return _medium(spec["iso"])
    system = spec.get("os") or {}
    if system.get("isoUri"):
        return Medium(system["isoUri"])
    if system.get("imageID") and annotations.get(BOOT_SOURCE) == "datavolume":
        return Medium(_source(system["imageID"], annotations.get(BOOT_SOURCE_TYPE, "http")))
    return None


def ejected(obj: Object) -> bool:
    """Say whether the guest was declared to be installed, or the medium to be out."""
    annotations = obj["metadata"].get("annotations") or {}
    return _SAID in (annotations.get(OS_INSTALLED), annotations.get(CDROM_EJECTED))


def _source(image: str, kind: str) -> str:
    """Return where upstream's image comes from, with the scheme that says so."""
    return f"docker://{image}" if kind == "registry" and "://" not in image else image


def _medium(said: Object) -> Medium:
    return Medium(
        source=said["source"],
        checksum=said.get("checksum"),
        credentials=said.get("credentialsSecret"),
        size_mib=mib(said["size"]) if "size" in said else None,
    )
