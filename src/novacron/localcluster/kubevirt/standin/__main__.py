"""Runs the stand-in: ``python -m novacron.localcluster.kubevirt.standin``."""

import argparse
import asyncio
import contextlib
import signal
import ssl
from dataclasses import dataclass
from pathlib import Path

import uvloop

from novacron.localcluster.kubevirt.names import NODE
from novacron.localcluster.kubevirt.standin.agent import Agent
from novacron.localcluster.kubevirt.standin.handler import Handler
from novacron.localcluster.kubevirt.standin.world import DATA_VOLUMES, World
from novacron.runtime.cache import Cache
from novacron.runtime.client import Client
from novacron.runtime.logs import configure_logs


@dataclass(frozen=True, slots=True)
class Settings:
    """What the stand-in is told by its arguments."""

    kubeconfig: Path
    handler_kubeconfig: Path
    certificate: Path
    key: Path
    authority: Path
    nodes: int
    port: int
    imports: bool


async def _serve(settings: Settings) -> None:
    names = tuple(NODE.format(number) for number in range(1, settings.nodes + 1))
    async with (
        Client.from_kubeconfig(settings.kubeconfig) as own,
        Client.from_kubeconfig(settings.handler_kubeconfig) as voice,
    ):
        imports = Cache(DATA_VOLUMES) if settings.imports else None
        world = World(own, voice, names, imports=imports)
        server = await Handler(world).listen(settings.port, _tls(settings))
        playing = asyncio.create_task(Agent(world).run())
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, playing.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await playing
        server.close()


def _tls(settings: Settings) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(settings.authority))
    context.load_cert_chain(settings.certificate, settings.key)
    # Whoever only asks whether we are well needs no certificate.
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


def _settings() -> Settings:
    parser = argparse.ArgumentParser(prog="stand-in", description=__doc__)
    for name in ("kubeconfig", "handler-kubeconfig", "certificate", "key", "authority"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in ("nodes", "port"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--imports", action="store_true")
    return Settings(**vars(parser.parse_args()))


def _main() -> None:
    settings = _settings()
    configure_logs("info", "text")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(settings))


if __name__ == "__main__":
    _main()
