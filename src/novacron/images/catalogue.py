"""The catalogue behind ``marketplace://``: well-known images by short names.

One comes with us; whoever runs the operator adds to it and replaces entries.
"""

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from novacron.core.errors import Rejected
from novacron.core.machine import Resources
from novacron.core.quantity import mib
from novacron.images.located import NOTHING

__all__ = ["Catalogue", "Entry", "shipped"]

FIELDS = frozenset(
    {"url", "checksum", "checksumFile", "format", "user", "description", "cpu", "memory", "disk"}
)
FORMATS = ("qcow2", "raw", "vmdk", "vhdx", "ova")
AGAIN = timedelta(seconds=20)
SCHEMES = {"url": ("https", "http", "s3", "builtin"), "checksumFile": ("https", "http")}
CHECKSUM = re.compile(r"^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$")
NAME = re.compile(r"^[a-z0-9]([a-z0-9._-]{0,126}[a-z0-9])?$")


@dataclass(frozen=True, slots=True)
class Entry:
    """One image: where it is, how it is checked, and what it needs."""

    name: str
    url: str
    checksum: str | None = None
    checksum_file: str | None = None
    format: str | None = None
    user: str | None = None
    description: str = ""
    minimum: Resources = NOTHING
    origin: str = "shipped"


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Images by name."""

    entries: Mapping[str, Entry]

    def find(self, name: str) -> Entry:
        """Return an entry; raise Rejected with names that look like it."""
        if name in self.entries:
            return self.entries[name]
        near = difflib.get_close_matches(name, self.entries, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}" if near else "novacron image list shows all"
        raise Rejected(
            f"no image in the catalogue is called {name}; {hint}",
            reason="ImageNotFound",
            again=AGAIN,
        )

    def extended(self, text: str, origin: str) -> "Catalogue":
        """Return the catalogue with the entries of a YAML text, which replace those of their name.

        Raises Rejected when the text is no catalogue.
        """
        return Catalogue({**self.entries, **{each.name: each for each in _read(text, origin)}})


@cache
def shipped() -> Catalogue:
    """Return the catalogue that comes with us."""
    text = files("novacron.images").joinpath("catalogue.yaml").read_text()
    return Catalogue({}).extended(text, "shipped")


def _read(text: str, origin: str) -> Iterator[Entry]:
    import yaml  # noqa: PLC0415 - heavy, and needed by few

    try:
        read = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise _mistake(origin, f"it is no YAML: {' '.join(str(error).split())[:200]}") from error
    if not isinstance(read or {}, dict):
        raise _mistake(origin, "it must be entries by their names")
    for name, fields in (read or {}).items():
        yield _entry(str(name), fields, origin)


def _entry(name: str, fields: Any, origin: str) -> Entry:  # noqa: ANN401 - anybody's text
    if not NAME.match(name):
        raise _mistake(origin, f"{name!r} is no name of lower-case letters, digits, '.', '_', '-'")
    if not isinstance(fields, dict) or not isinstance(fields.get("url"), str):
        raise _mistake(origin, f"{name} has no url")
    if unknown := sorted(set(map(str, fields)) - FIELDS):
        raise _mistake(
            origin, f"{name} has {', '.join(unknown)}; known: {', '.join(sorted(FIELDS))}"
        )
    _check(name, fields, origin)
    try:
        least = Resources(
            int(fields.get("cpu", 0)), mib(fields.get("memory", 0)), mib(fields.get("disk", 0))
        )
    except (ValueError, TypeError) as error:
        raise _mistake(origin, f"{name}: cpu, memory and disk are amounts: {error}") from error
    return Entry(
        name,
        fields["url"],
        fields.get("checksum"),
        fields.get("checksumFile"),
        fields.get("format"),
        fields.get("user"),
        str(fields.get("description") or ""),
        least,
        origin,
    )


def _check(name: str, fields: Mapping[str, Any], origin: str) -> None:
    for field, schemes in SCHEMES.items():
        if field in fields and urlsplit(str(fields[field])).scheme not in schemes:
            known = ", ".join(f"{scheme}://" for scheme in schemes)
            raise _mistake(origin, f"{field} of {name} must begin with one of {known}")
    if "checksum" in fields and not CHECKSUM.match(str(fields["checksum"])):
        raise _mistake(origin, f"checksum of {name} must be sha256: or sha512: and its digits")
    if "format" in fields and fields["format"] not in FORMATS:
        raise _mistake(origin, f"format of {name} must be one of {', '.join(FORMATS)}")


def _mistake(origin: str, what: str) -> Rejected:
    message = f"the image catalogue {origin} cannot be used: {what}"
    return Rejected(message, reason="BadCatalogue", again=AGAIN)
