"""What was done for a running guest, kept in the metadata of the guest itself.

Only in those of the guest that runs, never in its definition: what is started anew has none. It
survives a restart of libvirt and goes along when the guest moves.
"""

import re
from dataclasses import dataclass, replace
from secrets import token_hex
from xml.etree import ElementTree as ET

import libvirt

from novacron.core.hooks import Ran

__all__ = ["Begun", "Record"]

NAMESPACE = "https://novacron.io/libvirt/hooks/1"
PREFIX = "novacron-hooks"
ET.register_namespace(PREFIX, NAMESPACE)
CODE = re.compile(r"\d{1,3}\n?", re.ASCII)
# What counts as the end of something whose result cannot be read; as `timeout` has it, which ends
# with this when it fails itself.
ILLEGIBLE = 125


@dataclass(frozen=True, slots=True)
class Begun:
    """Something that was begun; ``token`` is what it is known by inside the guest."""

    name: str
    digest: str
    token: str
    code: int | None = None
    note: str = ""

    @classmethod
    def new(cls, name: str, digest: str) -> "Begun":
        """Return something to begin."""
        return cls(name, digest, token_hex(8))

    def ended(self, code: str, note: str) -> "Begun":
        """Return it with its end, as it was found in the guest, where anybody may have written."""
        if CODE.fullmatch(code):
            return replace(self, code=int(code), note=note)
        return replace(self, code=ILLEGIBLE, note=f"its result cannot be read; {note}")

    @property
    def ran(self) -> Ran | None:
        """Return how it ended, if it has."""
        return None if self.code is None else Ran(self.name, self.digest, self.code, self.note)


@dataclass(frozen=True, slots=True)
class Record:
    """All that was begun for one guest."""

    entries: tuple[Begun, ...] = ()

    @property
    def ended(self) -> tuple[Ran, ...]:
        """Return what has ended."""
        return tuple(ran for entry in self.entries if (ran := entry.ran) is not None)

    @property
    def under_way(self) -> tuple[str, ...]:
        """Return the names of what has not ended as far as anybody saw."""
        return tuple(entry.name for entry in self.entries if entry.ran is None)

    def named(self, name: str) -> Begun | None:
        """Return what was begun under a name."""
        return next((entry for entry in self.entries if entry.name == name), None)

    def without(self, name: str) -> "Record":
        """Return it as if nothing had been begun under a name."""
        return Record(tuple(entry for entry in self.entries if entry.name != name))

    def having(self, entry: Begun) -> "Record":
        """Return it with an entry in place of what was there under its name."""
        return Record((*self.without(entry.name).entries, entry))

    def write(self, handle: libvirt.virDomain) -> None:
        """Write it into a running guest's metadata. Blocks."""
        root = ET.Element("ran")
        for entry in self.entries:
            element = ET.SubElement(root, "begun", name=entry.name, digest=entry.digest)
            element.set("token", entry.token)
            if entry.code is not None:
                element.set("code", str(entry.code))
                element.set("note", entry.note)
        text = ET.tostring(root, encoding="unicode")
        flags = libvirt.VIR_DOMAIN_AFFECT_LIVE
        handle.setMetadata(libvirt.VIR_DOMAIN_METADATA_ELEMENT, text, PREFIX, NAMESPACE, flags)

    @classmethod
    def found(cls, metadata: ET.Element) -> "Record":
        """Return what a domain's metadata say."""
        # libvirt puts only the outermost element into the namespace.
        entries = metadata.find(f"{{{NAMESPACE}}}ran")
        return cls(() if entries is None else tuple(_begun(element) for element in entries))


def _begun(element: ET.Element) -> Begun:
    begun = Begun(
        element.get("name") or "", element.get("digest") or "", element.get("token") or ""
    )
    code = element.get("code")
    if code is None:
        return begun
    return replace(begun, code=int(code), note=element.get("note") or "")
