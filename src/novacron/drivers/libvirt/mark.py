"""Our mark in a domain's metadata: whose machine it is, and what it was made with.

A domain without it is not ours and is never touched. A definition changes its copy at once, a
running guest keeps the copy that it was started with.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree as ET
from xml.sax.saxutils import quoteattr

import libvirt

from novacron.core.guest_network import network_configuration
from novacron.core.machine import MachinePlan, Nic
from novacron.drivers.libvirt.fitted import Fitted, found
from novacron.drivers.libvirt.interfaces import mac_of

__all__ = ["NAMESPACE", "PREFIX", "Mark", "Told", "set_mark"]

NAMESPACE = "https://novacron.io/libvirt/1"
PREFIX = "novacron"
BEGUN = {True: "yes", False: "no"}


# The fields of an interface that words were made of before they were made of what guests are told.
FORMER_FIELDS = (
    "network",
    "address",
    "gateway",
    "address6",
    "gateway6",
    "mac",
    "dns_servers",
    "dns_search",
    "type",
    "dhcp6",
    "name",
    "model",
    "segment",
)


@dataclass(frozen=True, slots=True)
class Told:
    """What a guest was told about an interface: its addresses, and a word for all of it.

    ``former`` is the only word that guests have which were started before there was the other, so
    it is written on. Both are empty where a guest that was told nothing would do the same.
    """

    mac: str
    former: str = ""
    addresses: tuple[str, ...] = ()
    word: str = ""

    @classmethod
    def of(cls, mac: str, nic: Nic, entry: Mapping[str, Any]) -> "Told":
        """Return what a guest is told by an interface's entry of its network configuration."""
        if nic.plain:
            return cls(mac)
        word = _digest(json.dumps(entry, sort_keys=True))
        return cls(mac, _former_word(nic), nic.static, word)

    def is_same(self, other: "Told") -> bool:
        """Say whether two guests were told the same, by the best word that both have."""
        if self.word and other.word:
            return self.word == other.word
        return self.former == other.former


def _former_word(nic: Nic) -> str:
    """Return the word as it was made then, whatever fields an interface has by now."""
    fields = ", ".join(f"{name}={getattr(nic, name)!r}" for name in FORMER_FIELDS)
    return _digest(f"Nic({fields})")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _told(plan: MachinePlan) -> tuple[Told, ...]:
    nics = [(mac_of(plan.ref.uid, nic), nic) for nic in plan.nics]
    entries = network_configuration(nics)["ethernets"].values()
    return tuple(Told.of(mac, nic, entry) for (mac, nic), entry in zip(nics, entries, strict=True))


@dataclass(frozen=True, slots=True)
class Mark:
    """What is written into the metadata; ``shape`` is what the definition looked like then.

    ``cpu`` is the word for the CPU that a guest gets which is started with it. ``begun`` says that
    a guest was started: its first disk has data, and is never made a second time. None is what
    earlier operators wrote, who noted nothing of it. ``untold`` says that the first disk grew, and
    that no guest was told yet.
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
    begun: bool | None = None
    untold: bool = False

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
            told=_told(plan),
            volumes=volumes,
        )

    def told_of(self, mac: str) -> Told:
        """Return what the guest was told about an interface."""
        return next((each for each in self.told if each.mac == mac), Told(mac))

    @property
    def text(self) -> str:
        """Return it as XML that names its namespace."""
        return self._written(f"{PREFIX}:machine", f' xmlns:{PREFIX}="{NAMESPACE}"')

    @property
    def bare_text(self) -> str:
        """Return it as XML that is to be put into its namespace."""
        return self._written("machine")

    def _written(self, tag: str, declared: str = "") -> str:
        told = [[each.mac, each.former, *each.addresses] for each in self.told]
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
            "words": json.dumps({each.mac: each.word for each in self.told if each.word}),
        }
        if self.begun is not None:
            words["begun"] = BEGUN[self.begun]
        if self.untold:
            words["untold"] = "yes"
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
        words = json.loads(element.get("words") or "{}")
        return cls(
            **text,
            disk_mib=int(element.get("disk") or 0),
            recipe=element.get("recipe") or "",
            image=element.get("image") or "",
            told=tuple(
                Told(mac, former, tuple(addresses), words.get(mac, ""))
                for mac, former, *addresses in json.loads(element.get("told") or "[]")
            ),
            shape=element.get("shape") or "",
            volumes=found(element),
            cpu=element.get("cpu") or "",
            begun={word: begun for begun, word in BEGUN.items()}.get(element.get("begun") or ""),
            untold=element.get("untold") == "yes",
        )


def set_mark(handle: libvirt.virDomain, mark: Mark, flags: int) -> None:
    """Write a mark into a definition, or into a running guest's copy."""
    kind = libvirt.VIR_DOMAIN_METADATA_ELEMENT
    handle.setMetadata(kind, mark.bare_text, PREFIX, NAMESPACE, flags)
