"""Processes that begin with all our modules loaded.

Loading them takes longer than most of what tests have an operator do, and tests start hundreds. One
process loads them once, and each operator is a copy of it with a process, an environment and a log
of its own.
"""

import importlib
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.context import ForkServerContext
from pathlib import Path

__all__ = ["LOADED", "Forked"]

TESTS = Path(__file__).parent
# What an operator loads by the time it serves, whichever driver its hosts have.
LOADED = (
    "novacron.app.entry",
    "novacron.app.command",
    "novacron.app.main",
    "novacron.app.kubevirt_metrics",
    "novacron.drivers.kubevirt",
    "novacron.drivers.libvirt",
    "novacron.families.novacron.translate",
    "novacron.families.viti.translate",
)


def _server() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(LOADED))
    # It finds modules by its environment alone.
    known = os.environ.get("PYTHONPATH", "")
    if str(TESTS) not in known.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(TESTS), known)))
    return context


class Forked:
    """A process that calls ``main()`` of a module with arguments of its own."""

    def __init__(
        self, module: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path
    ) -> None:
        what = (module, list(arguments), dict(environment), str(log))
        # Whatever a test forgets ends with the tests.
        self._process = _server().Process(target=_run, args=what, daemon=True)
        self._process.start()

    @property
    def pid(self) -> int:
        """Its number."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """How it ended; a negative number is the signal that ended it."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """Return how it ended, or None while it has not."""
        return self._process.exitcode

    def wait(self, seconds: float) -> int:
        """Wait for its end and return how it ended."""
        self._process.join(seconds)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self._process.name, seconds)
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)


def _run(module: str, arguments: list[str], environment: dict[str, str], log: str) -> None:
    os.environ.clear()
    os.environ.update(environment)
    told = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (sys.stdout.fileno(), sys.stderr.fileno()):
        os.dup2(told, stream)
    os.close(told)
    sys.argv = [module, *arguments]
    importlib.import_module(module).main()
