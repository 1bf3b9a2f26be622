"""Whatever the order of news, answers, lists and broken watches, the cache ends as the server."""

import asyncio
from collections.abc import AsyncIterator
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from typing import Any

import looptime
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from novacron.runtime.cache import Cache, Change
from novacron.runtime.client import Page, WatchEvent
from novacron.runtime.errors import Gone, Unreachable
from novacron.runtime.reflector import Reflector
from novacron.runtime.resource import Key, Object, Resource, key_of

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
KEYS = [Key("default", name) for name in "abcd"]
PAGE_SIZE = 2

STEPS = st.one_of(
    st.tuples(st.sampled_from(["write", "delete", "own write"]), st.sampled_from(KEYS)),
    st.tuples(st.sampled_from(["answer", "answer", "no answer"]), st.integers(0, 3)),
    st.tuples(st.sampled_from(["news", "list"]), st.none()),
    st.tuples(st.sampled_from(["news", "list"]), st.none()),
    st.tuples(st.sampled_from(["news", "refresh", "refresh", "refresh", "cut", "gone"]), st.none()),
)


@dataclass
class Server:
    """Objects with revisions, and news of them that travel only when the test lets them."""

    revision: int = 1
    objects: dict[Key, Object] = field(default_factory=dict)
    log: list[WatchEvent] = field(default_factory=list)
    foreign: dict[Key, int] = field(default_factory=dict)
    news: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    lists: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    trouble: list[Exception] = field(default_factory=list)

    def write(self, key: Key) -> Object:
        self.revision += 1
        kind = "MODIFIED" if key in self.objects else "ADDED"
        metadata = {
            "namespace": key.namespace,
            "name": key.name,
            "resourceVersion": str(self.revision),
        }
        self.objects[key] = {"metadata": metadata}
        self.log.append(WatchEvent(kind, deepcopy(self.objects[key])))
        return deepcopy(self.objects[key])

    def delete(self, key: Key) -> None:
        if obj := self.objects.pop(key, None):
            self.revision += 1
            obj["metadata"]["resourceVersion"] = str(self.revision)
            self.log.append(WatchEvent("DELETED", obj))

    async def pages(self, *_: Any, limit: int, **__: Any) -> AsyncIterator[Page]:
        await self.lists.acquire()
        version, items = str(self.revision), deepcopy(list(self.objects.values()))
        while True:
            await self.lists.acquire()
            part, items = items[:limit], items[limit:]
            yield Page(part, version, "more" if items else "")
            if not items:
                return

    async def watch(self, *_: Any, since: str, **__: Any) -> AsyncIterator[WatchEvent]:
        position = int(since)
        while True:
            await self.news.acquire()
            if self.trouble:
                raise self.trouble.pop()
            later = [e for e in self.log if version_of(e.object) > position]
            metadata = {"metadata": {"resourceVersion": str(self.revision)}}
            event = later[0] if later else WatchEvent("BOOKMARK", metadata)
            position = version_of(event.object)
            yield deepcopy(event)


def version_of(obj: Object) -> int:
    return int(obj["metadata"]["resourceVersion"])


@dataclass
class World:
    """A server, a cache that follows it, and one who writes through the cache."""

    server: Server
    cache: Cache
    reflector: Reflector
    answers: list[Object] = field(default_factory=list)
    told: dict[Key, int] = field(default_factory=dict)
    refreshes: list["asyncio.Task[None]"] = field(default_factory=list)

    def heard(self, change: Change) -> None:
        if change.writer is None:
            self.told[change.key] = self.server.revision
            if change.object is not None:
                self.told[change.key] = version_of(change.object)

    def step(self, what: str, about: Any) -> None:
        server = self.server
        match what:
            case "write":
                server.foreign[about] = version_of(server.write(about))
            case "delete":
                server.delete(about)
            case "own write":
                self.own_write(about)
            case "answer" | "no answer" if about < len(self.answers):
                answer = self.answers.pop(about)
                self.cache.end(key_of(answer), "us", answer if what == "answer" else None)
            case "refresh":
                self.refreshes.append(asyncio.create_task(self.reflector.refresh()))
            case "news" | "list":
                (server.news if what == "news" else server.lists).release()
            case "cut" | "gone":
                server.trouble.append(Gone("gone") if what == "gone" else Unreachable("cut"))

    def own_write(self, key: Key) -> None:
        """Write on the condition that what the cache has is what the server has."""
        known, actual = self.cache.get(key), self.server.objects.get(key)
        if known and actual and version_of(known) == version_of(actual):
            self.cache.begin(key, "us")
            self.answers.append(self.server.write(key))


async def play(steps: list[tuple[str, Any]]) -> World:
    server, cache = Server(), Cache(WIDGETS)
    for key in KEYS[:3]:
        server.write(key)
    reflector: Any = Reflector(server, cache, page_size=PAGE_SIZE, random=Random(1))  # type: ignore[arg-type]
    world = World(server, cache, reflector)
    cache.subscribe(world.heard)
    following = asyncio.create_task(reflector.run())
    for what, about in [("list", None)] * 3 + steps:
        world.step(what, about)
        await asyncio.sleep(1)  # far longer than any pause of the first few failures
    for _ in range(40):
        world.step("list", None)
        world.step("news", None)
        world.step("answer", 0)
        await asyncio.sleep(20)
    following.cancel()
    await asyncio.gather(following, *world.refreshes, return_exceptions=True)
    return world


# Listed, deleted, and the news of the deletion overtakes the list.
OVERTAKEN = [
    ("write", KEYS[0]),
    ("news", None),
    ("refresh", None),
    ("list", None),
    ("delete", KEYS[0]),
    ("news", None),
    ("list", None),
    ("list", None),
]


@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, max_size=40))
@example(OVERTAKEN)
def test_the_cache_ends_as_the_server_is_and_nobody_misses_a_change(
    steps: list[tuple[str, Any]],
) -> None:
    """A lost deletion would be acted on for ever, a lost change never."""
    with asyncio.Runner(loop_factory=lambda: looptime.new_event_loop(start=0)) as runner:
        world = runner.run(play(steps))
    assert {key_of(obj): obj for obj in world.cache.objects()} == world.server.objects
    for key, version in world.server.foreign.items():
        if key in world.server.objects:
            assert world.told[key] >= version
