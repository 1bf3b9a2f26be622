"""What cloud-init finds in a guest: the machine's own words joined with those kept elsewhere.

Several texts become one MIME message. The same texts make the same bytes, so that a Secret which is
made again is the Secret that was there.
"""

import base64
import binascii
import json
from dataclasses import dataclass
from email import message_from_bytes
from email.message import Message
from email.mime.base import MIMEBase
from email.mime.multipart import MIMEMultipart
from hashlib import sha256
from typing import Any

from novacron.core.errors import Rejected

__all__ = ["Seed", "Source", "joined_user_data", "seed_of"]

Object = dict[str, Any]

# How cloud-init tells texts apart, the longer beginnings first.
TYPES = (
    (b"\x1f\x8b", "application/gzip"),
    (b"## template: jinja", "text/jinja2"),
    (b"#cloud-config-archive", "text/cloud-config-archive"),
    (b"#cloud-config-jsonp", "text/cloud-config-jsonp"),
    (b"#cloud-config", "text/cloud-config"),
    (b"#cloud-boothook", "text/cloud-boothook"),
    (b"#include-once", "text/x-include-once-url"),
    (b"#include", "text/x-include-url"),
    (b"#part-handler", "text/part-handler"),
    (b"#!", "text/x-shellscript"),
)
# By itself cloud-init would let the last text's lists replace those of the others.
MERGE = "list(append)+dict(no_replace,recurse_list)+str()"
_MIME_WITHIN = 4096


@dataclass(frozen=True, slots=True)
class Source:
    """A key of a Secret or a ConfigMap beside the machine."""

    kind: str
    name: str
    key: str


@dataclass(frozen=True, slots=True)
class Seed:
    """All that a machine says for cloud-init, and what is still to be fetched for it."""

    user_data: tuple[bytes, ...] = ()
    user_source: Source | None = None
    network_data: bytes | None = None
    network_source: Source | None = None
    config_drive: bool = False


def seed_of(spec: Object) -> Seed | None:
    """Return what a machine has for cloud-init; None is nothing at all."""
    said = spec.get("cloudInit") or {}
    own = [_bytes(said, "userData") or (spec.get("userData") or "").encode(), _keys(spec)]
    seed = Seed(
        user_data=tuple(part for part in own if part),
        user_source=_source(said, ("secretRef", "userDataSecretRef"), "userDataConfigMapRef"),
        network_data=_bytes(said, "networkData"),
        network_source=_source(said, ("networkDataSecretRef",), "networkDataConfigMapRef"),
        config_drive=said.get("type") == "configDrive",
    )
    return None if seed == Seed(config_drive=seed.config_drive) else seed


def _bytes(said: Object, name: str) -> bytes | None:
    if text := said.get(name):
        return str(text).encode()
    encoded = said.get(f"{name}Base64")
    if not encoded:
        return None
    try:
        return base64.b64decode("".join(encoded.split()), validate=True)
    except binascii.Error as error:
        raise Rejected(
            f"spec.cloudInit.{name}Base64 is not base64: write it as `base64 -w0 FILE` does",
            reason="InvalidSpec",
        ) from error


def _keys(spec: Object) -> bytes | None:
    """Return public keys as a text for cloud-init; JSON is YAML too."""
    keys = spec.get("sshKeys")
    return (
        f"#cloud-config\n{json.dumps({'ssh_authorized_keys': keys})}\n".encode() if keys else None
    )


def _source(said: Object, secrets: tuple[str, ...], config_map: str) -> Source | None:
    usual = "networkdata" if config_map.startswith("network") else "userdata"
    for name in (*secrets, config_map):
        if ref := said.get(name):
            kind = "ConfigMap" if name == config_map else "Secret"
            return Source(kind, ref["name"], ref.get("key", usual))
    return None


def joined_user_data(parts: tuple[bytes, ...]) -> bytes:
    """Return texts for cloud-init as one; a single one stays what it is."""
    if len(parts) < 2:
        return parts[0] if parts else b""
    mark = sha256(b"\0".join(parts)).hexdigest()[:24]
    message = MIMEMultipart(boundary=f"=={mark}==")
    for number, part in enumerate(parts, 1):
        message.attach(_part(part, number))
    return message.as_bytes()


def _part(text: bytes, number: int) -> Message:
    """Return one text as a part of a message; a text that is a message already stays one."""
    if b"mime-version:" in text[:_MIME_WITHIN].lower():
        return message_from_bytes(text)
    head = text[:_MIME_WITHIN].lstrip().lower()
    found = next((kind for start, kind in TYPES if head.startswith(start)), "text/plain")
    part = MIMEBase(*found.split("/"))
    # In base64 no line of a text can be taken for the end of the part.
    part.set_payload(base64.encodebytes(text).decode())
    part["Content-Transfer-Encoding"] = "base64"
    part["Content-Disposition"] = f'attachment; filename="part-{number:03}"'
    if found == "text/cloud-config":
        part["Merge-Type"] = MERGE
    return part
