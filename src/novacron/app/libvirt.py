"""Makes libvirt drivers from Hosts that ask for one."""

import base64
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from novacron.app.settings import Settings
from novacron.core.errors import Rejected, Unreachable
from novacron.core.host import DeclaredHost
from novacron.runtime.client import Client
from novacron.runtime.errors import ApiError, NotFound
from novacron.runtime.resource import Resource

if TYPE_CHECKING:
    from novacron.drivers.libvirt import LibvirtDriver

__all__ = ["builtin_image", "libvirt_driver"]

SECRETS = Resource("", "v1", "secrets", "Secret")
USER_MODE = "user"
OWN_NETWORK = "novacron"


def libvirt_driver(host: DeclaredHost, settings: Settings, client: Client) -> "LibvirtDriver":
    """Return the driver of a libvirt host."""
    try:
        # Loaded when the first such host is declared: it needs libvirt's own library.
        from novacron.drivers.libvirt import LibvirtDriver, LibvirtHost  # noqa: PLC0415
    except ImportError as error:
        raise Rejected(
            f"libvirt cannot be used here ({error}); install novacron with its libvirt extra"
        ) from error
    declared = LibvirtHost(
        name=host.name,
        uri=host.endpoint or "",
        pool=host.settings.get("storagePool", "novacron"),
        pool_path=host.settings.get("storagePath"),
        **_migration(host.settings.get("migration") or {}),
    )
    network = host.settings.get("network") or (USER_MODE if declared.is_session else OWN_NETWORK)
    return LibvirtDriver(
        declared.on_network(None if network == USER_MODE else network),
        partial(builtin_image, settings.images_directory),
        partial(_credentials, client, settings.namespace, host.credentials),
    )


def _migration(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        f"migration_{name}": settings[name]
        for name in ("uri", "address", "tls")
        if name in settings
    }


def builtin_image(directory: Path, name: str) -> Path | None:
    """Return the file of an image that comes with us."""
    path = directory / f"{name}.qcow2"
    return path if path.parent == directory and path.is_file() else None


async def _credentials(client: Client, namespace: str, name: str | None) -> Mapping[str, bytes]:
    if name is None:
        return {}
    try:
        secret = await client.get(SECRETS, name, namespace)
    except NotFound as error:
        raise Rejected(
            f"there is no Secret {name} in namespace {namespace}", reason="CredentialsMissing"
        ) from error
    except ApiError as error:
        raise Unreachable(f"Secret {name} cannot be read: {error.message}") from error
    return {key: base64.b64decode(text) for key, text in (secret.get("data") or {}).items()}
