"""Several texts for cloud-init as one MIME message.

The same texts make the same bytes, so that what is made again is what was there.
"""

import base64
from email import message_from_bytes
from email.message import Message
from email.mime.base import MIMEBase
from email.mime.multipart import MIMEMultipart
from hashlib import sha256

__all__ = ["joined"]

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
MOST_BEGINNING = 4096


def joined(parts: tuple[bytes, ...]) -> bytes:
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
    # By its headers: a script that sends mail has the same word within it.
    if "mime-version" in (message := message_from_bytes(text)):
        return message
    head = text[:MOST_BEGINNING].lstrip().lower()
    found = next((kind for start, kind in TYPES if head.startswith(start)), "text/plain")
    part = MIMEBase(*found.split("/"))
    # In base64 no line of a text can be taken for the end of the part.
    part.set_payload(base64.encodebytes(text).decode())
    part["Content-Transfer-Encoding"] = "base64"
    part["Content-Disposition"] = f'attachment; filename="part-{number:03}"'
    if found == "text/cloud-config":
        part["Merge-Type"] = MERGE
    return part
