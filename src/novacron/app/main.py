"""Runs an operator process from its settings."""

import asyncio
import gc
import logging
import signal
import sys

import uvloop

from novacron import __version__
from novacron.app.drivers import driver_makers
from novacron.app.operator import Operator
from novacron.app.settings import Settings
from novacron.runtime.bind import BadBindAddress, CannotListen
from novacron.runtime.client import Client
from novacron.runtime.connection import NoCluster
from novacron.runtime.errors import ApiError
from novacron.runtime.logs import configure_logs

__all__ = ["run", "serve"]

log = logging.getLogger(__name__)


def run(settings: Settings) -> int:
    """Run until a signal says stop; return the process's exit code."""
    configure_logs(settings.log_level, settings.log_format)
    try:
        client = Client.from_kubeconfig(settings.kubeconfig, settings.context)
        operator = Operator(settings, client, driver_makers(settings, client))
        return serve(operator)
    except (NoCluster, BadBindAddress, CannotListen, ApiError, ValueError) as error:
        sys.stderr.write(f"novacron operator: {error}\n")
        return 1


def serve(operator: Operator) -> int:
    """Run an operator on an event loop of its own."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_until_signal(operator))
    return 0


async def _until_signal(operator: Operator) -> None:
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, operator.stopping.set)
    # What is imported by now lives as long as the process: nothing to look through again.
    gc.collect()
    gc.freeze()
    # Objects here die by reference count; cycles are few, and looking for them takes time.
    gc.set_threshold(20_000, 20, 20)
    log.info("novacron operator %s starts", __version__)
    await operator.run()
    log.info("stopped")
