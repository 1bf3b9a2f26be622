"""The Secrets and ConfigMaps that pods refer to, each followed as long as some pod does.

One by one, because that is all a node may read: the API server lets it see only what the pods
on it refer to.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from novacron.runtime.cache import Cache, Change
from novacron.runtime.client import Client
from novacron.runtime.reflector import Reflector
from novacron.runtime.resource import Key, Object, Resource

__all__ = ["Sources"]


class _Name(NamedTuple):
    resource: Resource
    key: Key


@dataclass(slots=True)
class _Followed:
    cache: Cache
    task: "asyncio.Task[None]"
    users: dict[str, Callable[[], None]] = field(default_factory=dict)

    def changed(self, _: Change) -> None:
        for tell in tuple(self.users.values()):
            tell()


@dataclass(slots=True)
class Sources:
    """All that is followed now."""

    client: Client
    _followed: dict[_Name, _Followed] = field(default_factory=dict)

    def hold(
        self,
        user: str,
        namespace: str,
        references: Iterable[tuple[Resource, str]],
        tell: Callable[[], None],
    ) -> None:
        """Follow objects for a pod, and tell it whenever one of them changed."""
        for resource, name in references:
            wanted = _Name(resource, Key(namespace, name))
            if wanted not in self._followed:
                self._followed[wanted] = self._follow(wanted)
            self._followed[wanted].users[user] = tell

    async def known(self, user: str) -> None:
        """Wait until it is known of each of a pod's objects whether and how it is there."""
        for followed in tuple(self._followed.values()):
            if user in followed.users:
                await followed.cache.synced()

    def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """Return an object that is followed, if it is there."""
        key = Key(namespace, name)
        followed = self._followed.get(_Name(resource, key))
        return followed.cache.get(key) if followed else None

    async def release(self, user: str) -> None:
        """Follow no more what only this pod referred to."""
        for name, followed in tuple(self._followed.items()):
            followed.users.pop(user, None)
            if not followed.users:
                del self._followed[name]
                followed.task.cancel()
                with suppress(asyncio.CancelledError):
                    await followed.task

    async def close(self) -> None:
        """Follow nothing any more."""
        for user in {user for each in self._followed.values() for user in each.users}:
            await self.release(user)

    def _follow(self, wanted: _Name) -> _Followed:
        cache = Cache(wanted.resource)
        reflector = Reflector(
            self.client,
            cache,
            namespace=wanted.key.namespace,
            selector=f"metadata.name={wanted.key.name}",
        )
        followed = _Followed(cache, asyncio.create_task(reflector.run()))
        cache.subscribe(followed.changed)
        return followed
