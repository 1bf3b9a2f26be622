"""The runtime on the event loop it runs on in production; the other tests use asyncio's own."""

import asyncio

import uvloop

from loopback import until
from novacron.localcluster.controlplane import ControlPlane
from novacron.runtime.cache import Cache
from novacron.runtime.client import Client
from novacron.runtime.reflector import Reflector
from widgets import WIDGETS, install_widgets, widget

COUNT = 60


def test_a_cache_follows_the_server_on_uvloop(control_plane: ControlPlane, namespace: str) -> None:
    """TLS, keep-alive, pause and abort behave differently there; the outcome must not."""
    uvloop.run(follow(control_plane, namespace))


async def follow(plane: ControlPlane, namespace: str) -> None:
    await install_widgets(plane)
    async with Client.from_kubeconfig(plane.kubeconfig) as client:
        cache = Cache(WIDGETS)
        following = asyncio.create_task(Reflector(client, cache, namespace, page_size=7).run())
        await cache.synced()
        # Larger than a reader's allowance, so that the watch is paused and goes on.
        await asyncio.gather(*(change(client, namespace, number) for number in range(COUNT)))
        expected = {
            obj["metadata"]["name"]: obj["metadata"]["resourceVersion"]
            for obj in await client.list(WIDGETS, namespace)
        }
        assert len(expected) == COUNT / 2
        await until(lambda: versions(cache) == expected)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        # Left with several connections open and one request under way.
        asking = asyncio.create_task(client.list(WIDGETS, namespace))
        await asyncio.sleep(0)
    await asyncio.gather(asking, return_exceptions=True)


async def change(client: Client, namespace: str, number: int) -> None:
    name = f"w{number}"
    await client.create(WIDGETS, widget(name, namespace, pad="x" * 50_000))
    await client.patch(WIDGETS, name, {"spec": {"round": 1}}, namespace)
    if number % 2:
        await client.delete(WIDGETS, name, namespace)


def versions(cache: Cache) -> dict[str, str]:
    return {obj["metadata"]["name"]: obj["metadata"]["resourceVersion"] for obj in cache.objects()}
