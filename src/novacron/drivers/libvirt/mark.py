"""Our mark in a domain's metadata: whose machine it is, and what it was made with.

A domain without it is not ours and is never touched. A definition changes its copy at once, a
running guest keeps the copy that it was started with.
"""

from dataclasses import dataclass
from xml.etree import ElementTree as ET

from novacron.core.machine import MachinePlan

__all__ = ["NAMESPACE", "PREFIX", "Mark"]

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

    @classmethod
    def of(cls, plan: MachinePlan) -> "Mark":
        """Return the mark of a machine made by this plan."""
        ref = plan.ref
        disk_mib = plan.resources.disk_mib
        return cls(ref.uid, ref.namespace, ref.name, disk_mib, plan.recipe, plan.image)

    def element(self) -> ET.Element:
        """Return it as XML."""
        root = ET.Element(f"{{{NAMESPACE}}}machine")
        for name in ("uid", "namespace", "name", "recipe", "image", "shape"):
            root.set(name, getattr(self, name))
        root.set("disk", str(self.disk_mib))
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
        )


ET.register_namespace(PREFIX, NAMESPACE)
