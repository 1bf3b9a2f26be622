"""Whose an object of a cluster is, also where somebody took our labels off it."""

from novacron.drivers.kubevirt.names import UID
from novacron.runtime.resource import Object

__all__ = ["belongs_to", "is_known", "known_again"]


def is_known(found: Object, uid: str) -> bool:
    """Say whether an object carries a machine's UID, by which the cluster tells of it."""
    labels: dict[str, str] = found["metadata"].get("labels") or {}
    return labels.get(UID) == uid


def belongs_to(found: Object, uid: str) -> bool:
    """Say whether an object was made for a machine: its label, its owner or its guest says so."""
    labels: dict[str, str] = found["metadata"].get("labels") or {}
    if UID in labels:
        return labels[UID] == uid
    owners = found["metadata"].get("ownerReferences") or ()
    return any(owner["uid"] == uid for owner in owners) or _serial(found) == uid


def _serial(found: Object) -> str | None:
    """Return the UID that a VirtualMachine tells its guest."""
    template = (found.get("spec") or {}).get("template") or {}
    domain = (template.get("spec") or {}).get("domain") or {}
    serial: str | None = (domain.get("firmware") or {}).get("uuid")
    return serial


def known_again(wanted: Object) -> Object:
    """Return the patch that gives an object back by what it is known."""
    metadata = wanted["metadata"]
    kept = {name: metadata[name] for name in ("labels", "annotations") if name in metadata}
    return {"metadata": kept}
