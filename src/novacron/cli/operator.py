"""Our operator as a process beside the local cluster, kept running by a supervisor."""

import hashlib
import http.client
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from novacron.localcluster.code_version import code_version
from novacron.localcluster.ports import LOOPBACK, Ports
from novacron.localcluster.processes import Processes, Program
from novacron.workplace.home import Home

__all__ = ["OPERATOR_USER", "OperatorProcess"]

OPERATOR_USER = "novacron-operator"
NAME = "operator"
LISTENERS = {
    "metrics": "metrics-bind-addr",
    "health": "health-probe-bind-addr",
    "webhook": "webhook-bind-addr",
}
READY_WITHIN = timedelta(seconds=60)
STOP_WITHIN = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class OperatorProcess:
    """The operator that ``up`` runs."""

    home: Home

    @property
    def processes(self) -> Processes:
        """Return the record of its process."""
        return Processes(self.directory)

    @property
    def directory(self) -> Path:
        """Return where its log, its ports and what it keeps lie."""
        return self.home.state / NAME

    @property
    def port(self) -> int | None:
        """Return where it tells of its health."""
        return self._ports.read().get("health")

    def start(
        self, command: Sequence[str], kubeconfig: Path, flags: Sequence[str], *, webhooks: bool
    ) -> bool:
        """Start it or bring it up to date, wait until it is ready; say whether it was started."""
        for listener in LISTENERS:
            if listener not in self._ports.read() or not self.processes.running(NAME):
                self._ports.claim(listener)
        supervised = (sys.executable, "-m", "novacron.localcluster.supervise", *command)
        own = (
            f"--kubeconfig={kubeconfig}",
            f"--simulation-file={self.directory / 'simulation.db'}",
            # Not what a variable of the user's shell says that means something else to them.
            "--namespace=novacron-system",
        )
        program = Program(
            NAME,
            (*supervised, *own, *self._listening(webhooks=webhooks), *flags),
            version=code_version() + hashlib.sha256(kubeconfig.read_bytes()).hexdigest(),
        )
        started = self.processes.start(program)
        self.processes.wait_ready(NAME, self.ready, READY_WITHIN)
        return started

    def ready(self) -> bool:
        """Ask it whether its caches are filled and its webhooks served."""
        connection = http.client.HTTPConnection(LOOPBACK, self.port or 0, timeout=5)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def stop(self) -> bool:
        """Stop it in good order; say whether it ran."""
        return self.processes.stop(NAME, STOP_WITHIN)

    @property
    def _ports(self) -> Ports:
        return Ports(self.directory / "ports.json")

    def _listening(self, *, webhooks: bool) -> list[str]:
        ports = self._ports.read()
        flags = [f"--{flag}={LOOPBACK}:{ports[name]}" for name, flag in LISTENERS.items()]
        if webhooks:
            return [*flags, f"--webhook-url=https://{LOOPBACK}:{ports['webhook']}"]
        return [*flags[:-1], "--webhook-bind-addr=0"]
