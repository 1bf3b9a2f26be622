"""A key that all replicas share: made by whoever comes first, kept in a Secret, never shown."""

import base64
import binascii
import secrets

from novacron.runtime.client import Client
from novacron.runtime.errors import AlreadyExists, Invalid, NotFound
from novacron.runtime.resource import SECRETS, Key, Object

__all__ = ["KEY_BYTES", "shared_key"]

KEY_BYTES = 32
ENTRY = "key"


async def shared_key(client: Client, place: Key) -> bytes:
    """Return the key in a Secret, which is made where there is none."""
    while True:
        try:
            return _key_of(await client.get(SECRETS, place.name, place.namespace), place)
        except NotFound:
            made = secrets.token_bytes(KEY_BYTES)
        try:
            await client.create(SECRETS, _secret(place, made))
        except AlreadyExists:
            continue  # another replica was faster: take what it wrote
        return made


def _key_of(secret: Object, place: Key) -> bytes:
    try:
        key = base64.b64decode((secret.get("data") or {})[ENTRY], validate=True)
    except (KeyError, binascii.Error):
        key = b""
    if len(key) != KEY_BYTES:
        raise Invalid(
            f"Secret {place} has no {ENTRY} of {KEY_BYTES} bytes: delete it, and one is made"
        )
    return key


def _secret(place: Key, key: bytes) -> Object:
    metadata = {
        "name": place.name,
        "namespace": place.namespace,
        "labels": {"app.kubernetes.io/managed-by": "novacron"},
    }
    data = {ENTRY: base64.b64encode(key).decode()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
