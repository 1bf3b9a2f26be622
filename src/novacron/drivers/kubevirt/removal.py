"""Removing what was made for a machine."""

from contextlib import suppress

from novacron.runtime.client import Client
from novacron.runtime.errors import NotFound
from novacron.runtime.resource import Object, Resource

__all__ = ["remove"]


async def remove(client: Client, resource: Resource, obj: Object) -> None:
    """Delete this very object, and no later one of its name; one that goes already is success."""
    metadata = obj["metadata"]
    if "deletionTimestamp" in metadata:
        return
    with suppress(NotFound):
        name, namespace = metadata["name"], metadata["namespace"]
        await client.delete(resource, name, namespace, uid=metadata["uid"])
