"""The catalogue of images as the cluster extends it, for operator and command line alike."""

from datetime import timedelta

from novacron.core.errors import Rejected, Unreachable
from novacron.images import Catalogue, shipped
from novacron.runtime.client import Client
from novacron.runtime.errors import ApiError, Forbidden, NotFound
from novacron.runtime.resource import Resource

__all__ = ["CATALOGUE", "FORBIDDEN", "catalogue_of"]

CATALOGUE = "novacron-images"
FORBIDDEN = "CatalogueForbidden"
AGAIN = timedelta(seconds=20)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")


async def catalogue_of(client: Client, name: str, namespace: str) -> Catalogue:
    """Return our catalogue, extended by a ConfigMap if there is one.

    Each of its keys holds entries in YAML; later keys replace what earlier ones say.
    """
    found = shipped()
    try:
        extension = await client.get(CONFIG_MAPS, name, namespace)
    except NotFound:
        return found
    except Forbidden as error:
        message = f"ConfigMap {name} may not be read: {error.message}"
        raise Rejected(message, reason=FORBIDDEN, again=AGAIN) from error
    except ApiError as error:
        raise Unreachable(f"ConfigMap {name} cannot be read: {error.message}") from error
    for key, text in sorted((extension.get("data") or {}).items()):
        found = found.extended(text, f"{namespace}/{name}, {key}")
    return found
