"""Makes libvirt drivers from Hosts that ask for one."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from novacron.app.images import ImageFinder, secret_data
from novacron.app.settings import Settings
from novacron.core.errors import Rejected
from novacron.core.host import DeclaredHost
from novacron.core.quantity import parse_quantity
from novacron.images import Limits
from novacron.runtime.client import Client

if TYPE_CHECKING:
    from novacron.drivers.libvirt import LibvirtDriver

__all__ = ["libvirt_driver"]

USER_MODE = "user"
OWN_NETWORK = "novacron"
# For hosts stored before the schema had it as a default, and for those without libvirt settings.
IMAGE_CACHE = "50Gi"


def libvirt_driver(host: DeclaredHost, settings: Settings, client: Client) -> "LibvirtDriver":
    """Return the driver of a libvirt host."""
    try:
        # Loaded when the first such host is declared: it needs libvirt's own library.
        from novacron.drivers.libvirt import (  # noqa: PLC0415
            Bridged,
            ClassPool,
            LibvirtDriver,
            LibvirtHost,
            Workshop,
        )
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
        image_cache_bytes=int(parse_quantity(host.settings.get("imageCache", IMAGE_CACHE))),
        networks={
            name: Bridged(entry["type"], entry.get("bridge") or "", entry.get("vlan"))
            for name, entry in (host.settings.get("networks") or {}).items()
        },
        storage_classes={
            each["name"]: ClassPool(each["pool"], shared=each.get("shared", False))
            for each in host.settings.get("storageClasses") or ()
        },
        disk_overcommit=host.overcommit.disk,
        cpu_model=host.settings.get("cpuModel"),
    )
    network = host.settings.get("network") or (USER_MODE if declared.is_session else OWN_NETWORK)
    return LibvirtDriver(
        declared.on_network(None if network == USER_MODE else network),
        ImageFinder(settings, client, host.node),
        partial(_credentials, client, settings.namespace, host.credentials),
        Workshop(_limits(settings), settings.scratch_directory),
    )


def _migration(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        f"migration_{name}": settings[name]
        for name in ("uri", "address", "tls")
        if name in settings
    }


def _limits(settings: Settings) -> Limits:
    return Limits(
        int(parse_quantity(settings.image_max_size)), int(parse_quantity(settings.image_max_disk))
    )


async def _credentials(client: Client, namespace: str, name: str | None) -> Mapping[str, bytes]:
    return {} if name is None else await secret_data(client, name, namespace)
