"""Operators for tests: real processes with the operator's own user and rights."""

import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

import declared
from forked import Forked
from novacron.app.definitions import crds
from novacron.app.rights import OPERATOR, WEBHOOKS, rbac
from novacron.localcluster.controlplane import ControlPlane
from novacron.localcluster.ports import free_port

__all__ = ["PATIENCE_SECONDS", "RunningOperator", "eventually", "install"]

PATIENCE_SECONDS = 60.0


def install(plane: ControlPlane) -> None:
    """Install our kinds and the operator's rights into a cluster."""
    for definition in crds(["all"]):
        declared.install(plane, yaml.safe_dump(definition), definition["metadata"]["name"])
    plane.kubectl("apply", "--server-side", "-f", "-", input=yaml.safe_dump_all(rbac(["all"])))


def eventually(
    claim: Callable[[], bool], what: Callable[[], str], seconds: float = PATIENCE_SECONDS
) -> None:
    """Wait until a claim holds; the deadline is far beyond what it should take."""
    deadline = time.monotonic() + seconds
    while not claim():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what()}")
        time.sleep(0.05)


@dataclass(slots=True)
class RunningOperator:
    """``novacron operator run`` against a control plane, watching some namespaces.

    It is the user that ``install`` gave the operator's rights to, unless a kubeconfig says
    otherwise.
    """

    plane: ControlPlane
    directory: Path
    namespaces: Sequence[str]
    flags: Sequence[str] = ("--no-leader-elect",)
    program: Sequence[str] = ("novacron.app.entry", "operator", "run")
    environment: Mapping[str, str] = field(default_factory=dict)
    webhooks: bool = False
    name: str = "operator"
    kubeconfig: Path | None = None
    process: Forked | None = None
    ports: dict[str, int] = field(default_factory=dict)

    @property
    def simulation_file(self) -> Path:
        """Where simulated hosts keep their machines."""
        return self.directory / "simulation.db"

    @property
    def log(self) -> str:
        """What it said so far."""
        return (self.directory / f"{self.name}.log").read_text()

    def start(self, *, wait: bool = True) -> "RunningOperator":
        """Start the process and, unless told otherwise, wait until it is ready."""
        self.ports = {}
        for name in ("metrics", "health", "webhook"):
            self.ports[name] = free_port(self.ports.values())
        kubeconfig = self.kubeconfig or self.plane.client_certificate(OPERATOR)
        webhook = f"127.0.0.1:{self.ports['webhook']}"
        module, *words = self.program
        self.process = Forked(
            module,
            [
                *words,
                f"--kubeconfig={kubeconfig}",
                f"--metrics-bind-addr=127.0.0.1:{self.ports['metrics']}",
                f"--health-probe-bind-addr=127.0.0.1:{self.ports['health']}",
                f"--webhook-bind-addr={webhook if self.webhooks else '0'}",
                f"--webhook-url=https://{webhook}",
                f"--simulation-file={self.simulation_file}",
                "--reconcile-interval=1s",
                "--image-allow=127.0.0.0/8",
                *self.flags,
            ],
            {**os.environ, "WATCH_NAMESPACE": ",".join(self.namespaces), **self.environment},
            self.directory / f"{self.name}.log",
        )
        if wait:
            eventually(self.ready, lambda: f"{self.name} is ready; it said:\n{self.log}")
        return self

    def ready(self) -> bool:
        """Ask it."""
        assert self.process is not None
        assert self.process.poll() is None, f"{self.name} ended:\n{self.log}"
        return self.get("health", "/readyz") is not None

    def get(self, port: str, path: str) -> str | None:
        """Return what it answers, or None when that is not a success."""
        try:
            url = f"http://127.0.0.1:{self.ports[port]}{path}"
            with urllib.request.urlopen(url, timeout=5) as answer:
                text: str = answer.read().decode()
                return text
        except (urllib.error.URLError, OSError):
            return None

    def stop(self) -> int:
        """Stop it in good order and return its exit code."""
        code = self._end(signal.SIGTERM)
        # It goes on all the same, so nobody would see it.
        assert "was not understood" not in self.log, self.log
        return code

    @contextmanager
    def replaced(self, **changes: Any) -> Iterator["RunningOperator"]:
        """Have another one at work meanwhile, which is as it is but for some changes."""
        assert self.stop() == 0, self.log
        other = replace(self, process=None, name=f"{self.name}-instead", **changes).start()
        try:
            yield other
        finally:
            assert other.stop() == 0, other.log
            self.start()

    def kill(self) -> None:
        """End it as a crash would."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> int:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(how)
        code = self.process.wait(PATIENCE_SECONDS)
        if self.webhooks:
            # Without an operator they would refuse the next test's deletions.
            empty = ("--type=merge", "--patch", '{"webhooks": null}')
            self.plane.kubectl("patch", "validatingwebhookconfigurations", WEBHOOKS, *empty)
        return code
