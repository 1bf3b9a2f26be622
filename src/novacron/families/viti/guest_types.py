"""What a Machine is started with: cloud-init, image, install medium, operating system."""

from typing import Annotated, Literal

from pydantic import Field

from novacron.crd import Model, Rule
from novacron.families.shared_types import Text
from novacron.families.viti.size_types import Size

__all__ = ["MAX_USER_DATA", "CloudInit", "Image", "Iso", "OperatingSystem", "UserData"]

MAX_USER_DATA = 65536
_SOURCES = "https?://[^/ ]+(/[^ ]*)?|docker://[^/ ]+/[^ ]+|pvc://[^/ ]+/[^/ ]+"
_EXAMPLES = (
    "https://host/path, http://host/path, docker://registry/image:tag or pvc://namespace/name"
)

UserData = Annotated[str, Field(max_length=MAX_USER_DATA)]
Encoded = Annotated[
    str,
    Field(max_length=MAX_USER_DATA * 4 // 3 + 4),
    Rule(
        "self.matches('^[A-Za-z0-9+/\\\\s]*={0,2}\\\\s*$')",
        "must be base64, as `base64 -w0 FILE` writes it",
    ),
]
Source = Annotated[
    str,
    Field(max_length=2048),
    Rule(f"self.matches('^({_SOURCES})$')", f"source must be {_EXAMPLES}"),
]
Checksum = Annotated[
    str,
    Field(max_length=135),
    Rule(
        "self.matches('^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$')",
        "must be sha256: and 64, or sha512: and 128, lower-case hexadecimal digits",
    ),
]
SecretName = Annotated[str, Field(min_length=1, max_length=253)]
Key = Annotated[
    str,
    Field(min_length=1, max_length=253),
    Rule("self.matches('^[-._a-zA-Z0-9]+$')", "must be letters, digits, '-', '_' and '.'"),
]
_CHECKED = Rule(
    "!has(self.checksum) || self.source.startsWith('http')",
    "only what comes over http:// or https:// can be checked: leave checksum out",
    field_path=".checksum",
    reason="FieldValueForbidden",
)


class KeyRef(Model):
    """A key of a Secret or a ConfigMap of this namespace."""

    name: SecretName
    """The object's name."""
    key: Key | None = None
    """The key in it; without it, userdata, or networkdata for the network."""


def _one_of(what: str, *fields: str) -> Rule:
    given = " + ".join(f"(has(self.{field}) ? 1 : 0)" for field in fields)
    named = f"{', '.join(fields[:-1])} and {fields[-1]}"
    return Rule(
        f"{given} <= 1",
        f"{named} each say {what}: keep one of them",
        reason="FieldValueForbidden",
    )


class CloudInit(Model):
    """What cloud-init finds in the guest; what is written here and what a Secret holds join."""

    __rules__ = (
        _one_of("what the user data is", "userData", "userDataBase64"),
        _one_of(
            "where more user data is", "secretRef", "userDataSecretRef", "userDataConfigMapRef"
        ),
        _one_of(
            "what the network is",
            "networkData",
            "networkDataBase64",
            "networkDataSecretRef",
            "networkDataConfigMapRef",
        ),
    )

    user_data: UserData | None = None
    """User data, such as a text that begins with #cloud-config."""
    network_data: UserData | None = None
    """Network configuration of version 1 or 2."""
    secret_ref: KeyRef | None = None
    """More user data, in a Secret."""
    type: Literal["noCloud", "configDrive"] | None = None
    """How the guest finds it; without it, noCloud."""
    user_data_base64: Annotated[Encoded | None, Field(alias="userDataBase64")] = None
    """User data in base64."""
    network_data_base64: Annotated[Encoded | None, Field(alias="networkDataBase64")] = None
    """Network configuration in base64."""
    user_data_secret_ref: KeyRef | None = None
    """Upstream's word for secretRef."""
    network_data_secret_ref: KeyRef | None = None
    """Network configuration, in a Secret."""
    user_data_config_map_ref: KeyRef | None = None
    """More user data, in a ConfigMap."""
    network_data_config_map_ref: KeyRef | None = None
    """Network configuration, in a ConfigMap."""


class Image(Model):
    """What the disk to boot from is filled with; the machine starts once it is."""

    __rules__ = (_CHECKED,)

    source: Source
    """Where it comes from: a file over http(s)://, a container image docker://, a claim pvc://."""
    checksum: Checksum | None = None
    """What the bytes must amount to, such as sha256:…"""
    credentials_secret: SecretName | None = None
    """A Secret of this namespace with accessKeyId and secretKey for the source."""


class Iso(Model):
    """An install medium. It is ejected, and its claim deleted, once the machine is marked as
    installed or this is taken away."""

    __rules__ = (_CHECKED,)

    source: Source
    """Where it comes from: a file over http(s)://, a container image docker://, a claim pvc://."""
    checksum: Checksum | None = None
    """What the bytes must amount to, such as sha256:…"""
    credentials_secret: SecretName | None = None
    """A Secret of this namespace with accessKeyId and secretKey for the source."""
    size: Size | None = None
    """Room for it; without it, 10Gi."""


class OperatingSystem(Model):
    """Upstream's words for what is to run; only the medium has an effect."""

    __rules__ = (_one_of("what to install from", "imageID", "isoUri"),)

    family: Text | None = None
    """Such as linux or windows."""
    distribution: Text | None = None
    """Such as ubuntu."""
    version: Text | None = None
    """Such as 24.04."""
    architecture: Literal["amd64", "arm64", "x86_64"] | None = None
    """The guest's architecture."""
    image_id: Annotated[str | None, Field(alias="imageID", max_length=2048)] = None
    """The install medium, where the annotation kubevirt.io/boot-source is datavolume."""
    iso_uri: Annotated[str | None, Field(alias="isoUri", max_length=2048)] = None
    """Upstream's word for iso.source."""
    image_family: Text | None = None
    """Has no effect."""
