"""Our mark in a domain's metadata: whose machine it is, and what it was made with.

A domain without it is not ours and is never touched. A definition changes its copy at once, a
running guest keeps the copy that it was started with.
"""

from dataclasses import dataclass
from xml.etree import ElementTree as ET

import libvirt

from novacron.core.machine import MachinePlan
from novacron.drivers.libvirt.fitted import Fitted, found

__all__ = ["NAMESPACE", "PREFIX", "Mark", "set_mark"]

NAMESPACE = "https://novacron.io/libvirt/1"
PREFIX = "novacron"


@dataclass(frozen=True, slots=True)
class Mark:
    """What is written into the metadata; ``shape`` is what the definition looked like then."""

    uid: str
    namespace: str
    name: str
    disk_mib: int
    recipe: str
    image: str
    shape: str = ""
    volumes: tuple[Fitted, ...] = ()

    @classmethod
    def of(cls, plan: MachinePlan, volumes: tuple[Fitted, ...] = ()) -> "Mark":
        """Return the mark of a machine made by this plan."""
        ref = plan.ref
        return cls(
            uid=ref.uid,
            namespace=ref.namespace,
            name=ref.name,
            disk_mib=plan.resources.disk_mib,
            recipe=plan.recipe,
            image=plan.image,
            volumes=volumes,
        )

    def element(self) -> ET.Element:
        """Return it as XML."""
        root = ET.Element(f"{{{NAMESPACE}}}machine")
        for name in ("uid", "namespace", "name", "recipe", "image", "shape"):
            root.set(name, getattr(self, name))
        root.set("disk", str(self.disk_mib))
        root.extend(volume.element() for volume in self.volumes)
        return root

    @classmethod
    def found(cls, domain: ET.Element) -> "Mark | None":
        """Return the mark of a domain, or None when it is not ours."""
        element = domain.find(f"metadata/{{{NAMESPACE}}}machine")
        if element is None or not element.get("uid"):
            return None
        text = {name: element.get(name) or "" for name in ("uid", "namespace", "name")}
        return cls(
            **text,
            disk_mib=int(element.get("disk") or 0),
            recipe=element.get("recipe") or "",
            image=element.get("image") or "",
            shape=element.get("shape") or "",
            volumes=found(element),
        )


def set_mark(handle: libvirt.virDomain, mark: Mark, flags: int) -> None:
    """Write a mark into a definition, or into a running guest's copy."""
    element = mark.element()
    element.tag = element.tag.rpartition("}")[2]  # libvirt puts it into the namespace itself
    text = ET.tostring(element, encoding="unicode")
    handle.setMetadata(libvirt.VIR_DOMAIN_METADATA_ELEMENT, text, PREFIX, NAMESPACE, flags)


ET.register_namespace(PREFIX, NAMESPACE)
