"""The reflector's patience: what a watch that fails leads to, and how soon."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from novacron.runtime.cache import Cache
from novacron.runtime.client import Page, WatchEvent
from novacron.runtime.errors import ApiError, Gone, Overloaded, Unreachable
from novacron.runtime.reflector import Reflector
from novacron.runtime.resource import Object, Resource

pytestmark = pytest.mark.looptime

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")


def widget(name: str, version: int) -> Object:
    metadata = {"namespace": "red", "name": name, "resourceVersion": str(version)}
    return {"metadata": metadata}


class Script:
    """The two calls of a client a reflector needs; every watch plays the next scene."""

    def __init__(self, *scenes: list[WatchEvent | Exception | float]) -> None:
        self.scenes = list(scenes)
        self.lists: list[float] = []
        self.watches: list[tuple[float, str]] = []
        self.items: list[Object] = []
        self.version = 10

    async def pages(self, *_: Any, **__: Any) -> AsyncIterator[Page]:
        self.lists.append(asyncio.get_running_loop().time())
        yield Page(self.items, str(self.version), "")

    async def watch(self, *_: Any, since: str, **__: Any) -> AsyncIterator[WatchEvent]:
        self.watches.append((asyncio.get_running_loop().time(), since))
        for step in self.scenes.pop(0) if self.scenes else [100_000.0]:
            match step:
                case Exception():
                    raise step
                case float():
                    await asyncio.sleep(step)
                case WatchEvent():
                    yield step


class Restarts(list[str]):
    """Why watches were begun again."""

    def watch_restarted(self, resource: str, why: str) -> None:
        assert resource == "widgets.example.com"
        self.append(why)


@asynccontextmanager
async def following(script: Any, namespace: str = "") -> AsyncIterator[Reflector]:
    reflector = Reflector(script, Cache(WIDGETS), namespace, observer=Restarts())
    task = asyncio.create_task(reflector.run())
    try:
        yield reflector
        assert not task.done()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_it_resumes_where_it_was() -> None:
    """After a fault nothing is listed again and nothing missed: the version moves with the news."""
    script = Script(
        [WatchEvent("ADDED", widget("a", 11)), 5.0, Unreachable("cut")],
        [WatchEvent("BOOKMARK", widget("", 15)), 5.0],
        [100_000.0],
    )
    async with following(script) as reflector:
        await reflector.cache.synced()
        await asyncio.sleep(100)
        assert reflector.observer == ["error", "timeout"]
    assert len(script.lists) == 1
    assert [since for _, since in script.watches] == ["10", "11", "15"]


async def test_gone_means_listing_again() -> None:
    """What was deleted meanwhile is missing in the list, and nobody else will tell."""
    script = Script([WatchEvent("ADDED", widget("a", 11)), 5.0, Gone("too old")])
    async with following(script) as reflector:
        await asyncio.sleep(3)
        assert len(reflector.cache) == 1
        script.version = 20
        await asyncio.sleep(100)
        assert len(reflector.cache) == 0
        assert reflector.observer == ["gone"]
    assert [since for _, since in script.watches] == ["10", "20"]


@pytest.mark.parametrize("end", [Gone("again"), Unreachable("again"), None])
async def test_a_watch_that_always_fails_at_once_is_asked_less_and_less(
    end: ApiError | None,
) -> None:
    """A server in trouble must not be asked a thousand times a second, whatever it answers."""
    script = Script(*[[end] if end else [] for _ in range(200)])
    async with following(script):
        await asyncio.sleep(100)
        assert 5 <= len(script.watches) <= 30


async def test_an_outage_of_a_day_is_lived_through() -> None:
    """Pauses stop growing; the numbers behind them must, too."""
    script = Script(*[[Unreachable("down")] for _ in range(20_000)])
    async with following(script) as reflector:
        await asyncio.sleep(86_400)
        assert len(script.watches) > 8_000
        assert reflector.observer


async def test_the_server_may_name_the_pause() -> None:
    """429 with Retry-After counts for watches too."""
    script = Script([Overloaded("busy", code=429, retry_after=42.0)])
    async with following(script):
        await asyncio.sleep(100)
    (first, _), (second, _) = script.watches
    assert second - first == pytest.approx(42, abs=0.5)


async def test_a_refresh_lists_without_ending_the_watch() -> None:
    """Whoever takes over a shard asks for it while everything goes on."""
    script = Script()
    async with following(script) as reflector:
        await reflector.cache.synced()
        script.items, script.version = [widget("a", 12)], 12
        await reflector.refresh()
        assert len(reflector.cache) == 1
    assert (len(script.lists), len(script.watches)) == (2, 1)


async def test_only_its_own_namespace_is_synced_by_it() -> None:
    """A cache of several namespaces waits for all of them."""
    async with following(Script(), "red") as reflector:
        reflector.cache.expect("blue")
        await asyncio.sleep(10)
        assert not reflector.cache.is_synced
