"""An API server on paper whose answers and news come when a test says so, if at all."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from novacron.runtime.errors import ApiError, Conflict, NotFound, Unreachable
from novacron.runtime.resource import Key, Object, Resource, key_of
from unit.controllers.office import Paper

__all__ = ["FalteringPaper"]


@dataclass
class FalteringPaper(Paper):
    """Objects as they are written, requests that wait, and news that nobody was told of."""

    objects: dict[Key, Object] = field(default_factory=dict)
    news: dict[Key, deque[Object]] = field(default_factory=dict)
    asked: list[tuple[Callable[[], Object], asyncio.Future[Object]]] = field(default_factory=list)
    late: list[Callable[[], Object]] = field(default_factory=list)

    async def replace(self, resource: Resource, body: Object, subresource: str = "") -> Object:
        """Have a write wait for its fate."""
        del resource
        return await self._ask(lambda: self._replaced(body, subresource))

    async def get(self, resource: Resource, name: str, namespace: str) -> Object:
        """Have a question wait for its fate."""
        del resource
        return await self._ask(lambda: self._found(Key(namespace, name)))

    async def _ask(self, act: Callable[[], Object]) -> Object:
        self.asked.append((act, asyncio.get_running_loop().create_future()))
        return await self.asked[-1][1]

    def answer(self, fate: str, number: int) -> None:
        """Decide what becomes of one request, which may also be made after its sender gave up."""
        act, future = self.asked.pop(number % len(self.asked))
        try:
            if fate == "conflict":
                raise Conflict("somebody was faster")
            answer = act() if fate in ("done", "answer lost") else {}
            if fate == "late":
                self.late.append(act)
            if fate != "done":
                raise Unreachable("no answer")
            future.set_result(answer)
        except ApiError as error:
            future.set_exception(error)

    def _found(self, key: Key) -> Object:
        if key not in self.objects:
            raise NotFound(str(key))
        return self.objects[key]

    def _replaced(self, body: Object, subresource: str) -> Object:
        before = self._found(key_of(body))
        if before["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"]:
            raise Conflict("it is another one now")
        if subresource:
            return self.write({**before, "status": body["status"]})
        return self.write({**body, "status": before["status"]})

    def write(self, body: Object) -> Object:
        """Have an object be so, unless it is let go of by that, and keep the news for later."""
        key, now = key_of(body), self.numbered(body)
        before = self.objects.get(key)
        if before and before["spec"] != now["spec"]:
            now["metadata"]["generation"] += 1
        if "deletionTimestamp" in now["metadata"] and not now["metadata"].get("finalizers"):
            now["gone"] = self.objects.pop(key)
        else:
            self.objects[key] = now
        self.news.setdefault(key, deque()).append(now)
        return now
