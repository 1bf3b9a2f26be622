"""Writes to the objects of one cache, in one controller's name."""

from dataclasses import dataclass

from novacron.runtime.cache import Cache
from novacron.runtime.client import Client
from novacron.runtime.errors import NotFound
from novacron.runtime.merge import merge_patch
from novacron.runtime.resource import Key, Object

__all__ = ["Writer"]


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes differences, and puts the answers into the cache.

    The version an object was read at is a precondition of every write: whoever decides on
    something stale gets a conflict and looks again.
    """

    client: Client
    cache: Cache
    name: str

    async def status(self, obj: Object, status: Object) -> bool:
        """Write the difference to the status; say whether there was one."""
        patch = merge_patch(obj.get("status") or {}, status)
        if not patch:
            return False
        await self._write(obj, {"status": patch}, "status")
        return True

    async def finalizers(self, obj: Object, finalizers: list[str]) -> None:
        """Write the finalizers."""
        await self._write(obj, {"metadata": {"finalizers": finalizers or None}}, None)

    async def fresh(self, key: Key) -> Object | None:
        """Ask the server for an object, past the cache."""
        try:
            obj = await self.client.get(self.cache.resource, key.name, key.namespace)
        except NotFound:
            return None
        self.cache.remember(obj, self.name)
        return obj

    async def _write(self, obj: Object, patch: Object, subresource: str | None) -> None:
        metadata = obj["metadata"]
        patch.setdefault("metadata", {})["resourceVersion"] = metadata["resourceVersion"]
        answer = await self.client.patch(
            self.cache.resource,
            metadata["name"],
            patch,
            metadata.get("namespace"),
            subresource=subresource,
        )
        self.cache.remember(answer, self.name)
