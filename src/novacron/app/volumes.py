"""Volumes of a host, deleted through its driver, for the command that does so."""

from typing import TYPE_CHECKING

from novacron.app.drivers import driver_makers
from novacron.app.registry import HOST_KIND, HOSTS
from novacron.app.settings import Settings
from novacron.core.errors import Unsupported
from novacron.core.volume import VolumeKeeping

if TYPE_CHECKING:
    from novacron.runtime.client import Client

__all__ = ["delete_volume"]


async def delete_volume(
    client: "Client", host: str, namespace: str, volume: str, secrets: str
) -> None:
    """Delete a volume that no machine has."""
    declared = HOST_KIND.host(await client.get(HOSTS, host))
    driver = driver_makers(Settings(namespace=secrets), client)[declared.driver](declared)
    keeping: object = driver
    try:
        if not isinstance(keeping, VolumeKeeping):
            raise Unsupported(f"driver {declared.driver} keeps no volumes")
        await keeping.delete_volume(host, namespace, volume)
    finally:
        await driver.close()
