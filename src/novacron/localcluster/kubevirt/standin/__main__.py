"""Runs the stand-in: ``python -m novacron.localcluster.kubevirt.standin``."""

import argparse
import asyncio
import contextlib
import signal
from pathlib import Path

import uvloop

from novacron.localcluster.kubevirt.names import NODE
from novacron.localcluster.kubevirt.standin.agent import Agent
from novacron.localcluster.kubevirt.standin.world import World
from novacron.runtime.client import Client
from novacron.runtime.logs import configure_logs


async def _serve(kubeconfig: Path, handler: Path, nodes: int) -> None:
    names = tuple(NODE.format(number) for number in range(1, nodes + 1))
    async with Client.from_kubeconfig(kubeconfig) as own, Client.from_kubeconfig(handler) as voice:
        playing = asyncio.create_task(Agent(World(own, voice, names)).run())
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, playing.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await playing


def _main() -> None:
    parser = argparse.ArgumentParser(prog="stand-in", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--handler-kubeconfig", type=Path, required=True)
    parser.add_argument("--nodes", type=int, required=True)
    given = parser.parse_args()
    configure_logs("info", "text")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(given.kubeconfig, given.handler_kubeconfig, given.nodes))


if __name__ == "__main__":
    _main()
