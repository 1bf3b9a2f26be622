"""What a Machine has its guest told by cloud-init, in whichever of its words."""

import base64
import binascii
import json
from typing import Any

from novacron.core.cloud_init import Source, Told
from novacron.core.errors import Rejected

__all__ = ["told_by"]

Object = dict[str, Any]


def told_by(spec: Object) -> Told | None:
    """Return what a machine has for cloud-init; None is nothing at all."""
    said = spec.get("cloudInit") or {}
    own = [_bytes(said, "userData") or (spec.get("userData") or "").encode(), _keys(spec)]
    told = Told(
        user_data=tuple(part for part in own if part),
        user_source=_source(said, ("secretRef", "userDataSecretRef"), "userDataConfigMapRef"),
        network_data=_bytes(said, "networkData"),
        network_source=_source(said, ("networkDataSecretRef",), "networkDataConfigMapRef"),
        config_drive=said.get("type") == "configDrive",
    )
    return None if told == Told(config_drive=told.config_drive) else told


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
