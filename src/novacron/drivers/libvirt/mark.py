"""Our mark in a domain's metadata: whose machine it is, and what it was made with.

A domain without it is not ours and is never touched. A definition changes its copy at once, a
running guest keeps the copy that it was started with.
"""

import hashlib
import json
from dataclasses import dataclass
from xml.etree import ElementTree as ET
from xml.sax.saxutils import quoteattr

import libvirt

from novacron.core.machine import MachinePlan, Nic
from novacron.drivers.libvirt.fitted import Fitted, found
from novacron.drivers.libvirt.interfaces import mac_of

__all__ = ["NAMESPACE", "PREFIX", "Mark", "Told", "set_mark"]

NAMESPACE = "https://novacron.io/libvirt/1"
PREFIX = "novacron"


@dataclass(frozen=True, slots=True)
class Told:
    """What a guest was told about an interface: its addresses, and a word for all of it.

    The word is empty where a guest that was told nothing would do the same.
    """

    mac: str
    word: str = ""
    addresses: tuple[str, ...] = ()

    @classmethod
    def of(cls, uid: str, nic: Nic) -> "Told":
        """Return what a guest is told about an interface."""
        word = "" if nic.plain else hashlib.sha256(repr(nic).encode()).hexdigest()[:12]
        return cls(mac_of(uid, nic), word, nic.static)


@dataclass(frozen=True, slots=True)
class Mark:
    """What is written into the metadata; ``shape`` is what the definition looked like then.

    ``cpu`` is the word for the CPU that a guest gets which is started with it.
    """

    uid: str
    namespace: str
    name: str
    disk_mib: int
    recipe: str
    image: str
    told: tuple[Told, ...] = ()
    shape: str = ""
    volumes: tuple[Fitted, ...] = ()
    cpu: str = ""

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
            told=tuple(Told.of(ref.uid, nic) for nic in plan.nics),
            volumes=volumes,
        )

    def word_for(self, mac: str) -> str:
        """Return the word for what the guest was told about an interface."""
        return next((each.word for each in self.told if each.mac == mac), "")

    def static_for(self, mac: str) -> tuple[str, ...]:
        """Return the addresses that were written down for an interface."""
        return next((each.addresses for each in self.told if each.mac == mac), ())

    @property
    def text(self) -> str:
        """Return it as XML that names its namespace."""
        return self._written(f"{PREFIX}:machine", f' xmlns:{PREFIX}="{NAMESPACE}"')

    @property
    def bare_text(self) -> str:
        """Return it as XML that is to be put into its namespace."""
        return self._written("machine")

    def _written(self, tag: str, declared: str = "") -> str:
        told = [[each.mac, each.word, *each.addresses] for each in self.told]
        words = {
            "uid": self.uid,
            "namespace": self.namespace,
            "name": self.name,
            "recipe": self.recipe,
            "image": self.image,
            "shape": self.shape,
            "cpu": self.cpu,
            "disk": str(self.disk_mib),
            "told": json.dumps(told),
        }
        said = "".join(f" {name}={quoteattr(value)}" for name, value in words.items())
        volumes = (ET.tostring(each.element(), encoding="unicode") for each in self.volumes)
        return f"<{tag}{declared}{said}>{''.join(volumes)}</{tag}>"

    @classmethod
    def found(cls, metadata: ET.Element) -> "Mark | None":
        """Return the mark of a domain, or None when it is not ours."""
        element = metadata.find(f"{{{NAMESPACE}}}machine")
        if element is None or not element.get("uid"):
            return None
        text = {name: element.get(name) or "" for name in ("uid", "namespace", "name")}
        return cls(
            **text,
            disk_mib=int(element.get("disk") or 0),
            recipe=element.get("recipe") or "",
            image=element.get("image") or "",
            told=tuple(
                Told(mac, word, tuple(addresses))
                for mac, word, *addresses in json.loads(element.get("told") or "[]")
            ),
            shape=element.get("shape") or "",
            volumes=found(element),
            cpu=element.get("cpu") or "",
        )


def set_mark(handle: libvirt.virDomain, mark: Mark, flags: int) -> None:
    """Write a mark into a definition, or into a running guest's copy."""
    kind = libvirt.VIR_DOMAIN_METADATA_ELEMENT
    handle.setMetadata(kind, mark.bare_text, PREFIX, NAMESPACE, flags)
