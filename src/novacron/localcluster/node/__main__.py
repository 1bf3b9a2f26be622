"""Runs the node's agent: ``python -m novacron.localcluster.node``, started by the local cluster."""

import argparse
import asyncio
import ipaddress
import logging
import signal
import ssl
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import uvloop

from novacron.localcluster.node.ability import inability
from novacron.localcluster.node.agent import Agent
from novacron.localcluster.node.endpoint import Endpoint, listening
from novacron.localcluster.node.image import OwnImage
from novacron.localcluster.node.network import Network
from novacron.localcluster.node.node_context import PODS, NodeContext
from novacron.localcluster.node.registration import Registration, capacity
from novacron.localcluster.node.relay import Connect
from novacron.localcluster.node.sources import Sources
from novacron.localcluster.node.subnet import Subnet
from novacron.localcluster.ports import LOOPBACK
from novacron.runtime.cache import Cache
from novacron.runtime.client import Client
from novacron.runtime.errors import ApiError
from novacron.runtime.events import Events
from novacron.runtime.logs import configure_logs

log = logging.getLogger(__name__)

REPORTER = "novacron-node"
LEAVE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Settings:
    """What the agent is told by its arguments."""

    directory: Path
    kubeconfig: Path
    image: str
    port: int
    subnet: ipaddress.IPv4Network
    bridge: str
    certificate: Path
    key: Path
    authority: Path


async def _serve(settings: Settings, problem: str | None) -> None:
    stopping = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stopping.set)
    async with Client.from_kubeconfig(settings.kubeconfig) as client:
        node = _context(settings, client)
        agent = Agent(node)
        registration = Registration(
            client, node.image, node.allocatable, node.address, settings.port, problem
        )
        endpoint = Endpoint(agent.send_log, lambda: bool(problem) or agent.ready)
        await endpoint.listen(listening(LOOPBACK, settings.port), _tls(settings))
        if not problem:
            node.network.ensure()
            # Not by way of the machine's other devices: the API server is on this machine.
            near = listening(node.address, settings.port, settings.bridge)
            await endpoint.listen(near, _tls(settings))
        await registration.register()
        parts = [registration.run(), node.events.run(), *([] if problem else [agent.run()])]
        try:
            await _work(stopping, parts)
        finally:
            # A fault of ours is no reason to end the pods: the next agent takes them over.
            if stopping.is_set():
                await _leave(agent, registration)
            endpoint.close()
            await node.sources.close()


async def _work(stopping: asyncio.Event, parts: Sequence[Coroutine[None, None, None]]) -> None:
    """Let the parts work until told to stop; none of them may end before."""
    stop = asyncio.create_task(stopping.wait())
    tasks = [asyncio.create_task(part) for part in parts]
    done, _ = await asyncio.wait({stop, *tasks}, return_when=asyncio.FIRST_COMPLETED)
    for task in (stop, *tasks):
        task.cancel()
    await asyncio.gather(stop, *tasks, return_exceptions=True)
    for task in done - {stop}:
        await task


async def _leave(agent: Agent, registration: Registration) -> None:
    """End the pods while they still reach the API server, and say that the node is away."""
    await agent.interrupt()
    try:
        async with asyncio.timeout(LEAVE_SECONDS):
            await registration.leave()
    except (ApiError, TimeoutError) as error:
        log.warning("the API server was not told: %s", error)


def _context(settings: Settings, client: Client) -> NodeContext:
    loop = asyncio.get_running_loop()
    server = urlsplit(client.connection.server)
    assert server.hostname
    assert server.port
    host, port = server.hostname, server.port
    connect: Connect = lambda protocol: loop.create_connection(protocol, host, port)  # noqa: E731
    return NodeContext(
        directory=settings.directory,
        client=client,
        cache=Cache(PODS),
        events=Events(client, REPORTER),
        sources=Sources(client),
        image=OwnImage(settings.image),
        network=Network(Subnet(settings.subnet, settings.bridge)),
        allocatable=capacity(settings.directory),
        connect=connect,
        api_port=port,
    )


def _tls(settings: Settings) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(settings.authority))
    context.load_cert_chain(settings.certificate, settings.key)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def _settings() -> Settings:
    parser = argparse.ArgumentParser(prog="novacron-node", description=__doc__)
    for name in ("directory", "kubeconfig", "certificate", "key", "authority"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--image", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--subnet", type=ipaddress.IPv4Network, required=True)
    parser.add_argument("--bridge", required=True)
    return Settings(**vars(parser.parse_args()))


def _main() -> None:
    settings = _settings()
    configure_logs("info", "text")
    problem = inability()
    if problem:
        log.warning("%s", problem)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(settings, problem))


if __name__ == "__main__":
    _main()
