"""Finds the checksum of an image in a file of checksums, as distributions publish them."""

import re
from contextlib import closing
from datetime import timedelta
from urllib.parse import unquote, urlsplit

from novacron.core.errors import Rejected
from novacron.images.bytes import Bytes
from novacron.images.steady import Steady

__all__ = ["checksum_from", "checksum_in"]

MOST_BYTES = 1024 * 1024
AGAIN = timedelta(minutes=1)
ALGORITHMS = {64: "sha256", 128: "sha512"}
# "digest  name" with a star before the name for binary files, or "SHA256 (name) = digest".
PLAIN = re.compile(r"^([0-9a-fA-F]{64,128})(?:\s+\*?(\S+))?\s*$")
NAMED = re.compile(r"^SHA(?:256|512)\s*\((.+)\)\s*=\s*([0-9a-fA-F]{64,128})\s*$")


def checksum_from(file: Bytes, image: str) -> str:
    """Read a file of checksums and return the image's."""
    with closing(Steady(file, lambda: None, proven=False)) as steady:
        text = steady.read(MOST_BYTES)
    found = checksum_in(text.decode(errors="replace"), image)
    if found is None:
        raise Rejected(
            f"{file.shown} has no SHA-256 or SHA-512 checksum of {_name(image)}",
            reason="ChecksumNotFound",
            again=AGAIN,
        )
    return found


def checksum_in(text: str, image: str) -> str | None:
    """Return the checksum of an image by the last part of its address."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    for line in lines:
        if found := NAMED.match(line):
            name, digest = found[1], found[2]
        elif found := PLAIN.match(line):
            # A file with one bare digest is of the one image that it lies beside.
            name, digest = found[2] or (_name(image) if len(lines) == 1 else ""), found[1]
        else:
            continue
        if name.rpartition("/")[2] == _name(image) and len(digest) in ALGORITHMS:
            return f"{ALGORITHMS[len(digest)]}:{digest.lower()}"
    return None


def _name(image: str) -> str:
    return unquote(urlsplit(image).path).rpartition("/")[2]
