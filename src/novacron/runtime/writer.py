"""Writes to the objects of one cache, in one controller's name."""

from dataclasses import dataclass

from novacron.runtime.cache import Cache
from novacron.runtime.client import Client
from novacron.runtime.errors import NotFound
from novacron.runtime.resource import Key, Object, key_of

__all__ = ["Writer"]


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes what differs, and puts the answers into the cache.

    The version an object was read at is a precondition of every write: whoever decides on
    something stale gets a conflict and looks again.
    """

    client: Client
    cache: Cache
    name: str

    async def status(self, obj: Object, status: Object) -> bool:
        """Write the status if it differs; say whether it did.

        The whole object goes back with it: for the API server that is an eighth cheaper than
        working a patch into what it has.
        """
        new = {name: value for name, value in status.items() if value is not None}
        if new == (obj.get("status") or {}):
            return False
        body = {**obj, "status": new}
        with self.cache.writing(key_of(obj), self.name) as answered:
            answered(await self.client.replace(self.cache.resource, body, subresource="status"))
        return True

    async def replace(self, obj: Object) -> Object:
        """Write an object's metadata and spec."""
        with self.cache.writing(key_of(obj), self.name) as answered:
            answer = await self.client.replace(self.cache.resource, obj)
            answered(answer)
        return answer

    async def finalizers(self, obj: Object, finalizers: list[str]) -> None:
        """Write the finalizers."""
        metadata = obj["metadata"]
        patch = {
            "metadata": {
                "resourceVersion": metadata["resourceVersion"],
                "finalizers": finalizers or None,
            }
        }
        with self.cache.writing(key_of(obj), self.name) as answered:
            answered(
                await self.client.patch(
                    self.cache.resource, metadata["name"], patch, metadata.get("namespace")
                )
            )

    async def fresh(self, key: Key) -> Object | None:
        """Ask the server for an object, past the cache."""
        try:
            obj = await self.client.get(self.cache.resource, key.name, key.namespace)
        except NotFound:
            return None
        self.cache.remember(obj, self.name)
        return obj
