"""The operators that compete, each told the same way where its cluster is.

Knows how each is built and started; measures nothing.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from novacron.localcluster.errors import BuildFailed
from novacron.localcluster.golang import find_go
from novacron.localcluster.ports import LOOPBACK, free_port
from novacron.workplace.home import Home
from novacron.workplace.progress import Silent

__all__ = ["CONTENDERS", "OURS", "YARDSTICK", "Contender", "Launch", "Unavailable"]

PEERS = Path(__file__).parent / "peers"
REPOSITORY = PEERS.parent.parent


class Unavailable(Exception):
    """A contender cannot be started here; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start an operator and where it says that it is ready."""

    command: tuple[str, ...]
    ready_url: str
    environment: Mapping[str, str] = field(default_factory=dict)


class Contender(Protocol):
    """An operator that brings VirtualMachines to Running."""

    @property
    def name(self) -> str:
        """Return what the tables call it."""

    def prepare(self) -> None:
        """Build or find the program; raise ``Unavailable`` when that is not possible."""

    def launch(self, kubeconfig: Path, scratch: Path) -> Launch:
        """Return how to start it against this cluster; what it keeps goes to the directory."""


class NovaCron:
    """Our own operator, whole: webhooks, placement, the simulation driver."""

    name = "novacron"
    program = Path(sys.executable).with_name("novacron")

    def prepare(self) -> None:
        """Look whether this interpreter's environment has our command with its operator."""
        if not _succeeds(self.program, "operator", "run", "--help"):
            raise Unavailable(f"{self.program} has no `operator run`")

    def launch(self, kubeconfig: Path, scratch: Path) -> Launch:
        """Start it as an administrator would on one machine; it may keep state in the directory."""
        metrics, probes, webhooks = _addresses(3)
        command = (
            *(str(self.program), "operator", "run", "--no-leader-elect"),
            f"--metrics-bind-addr={metrics}",
            f"--health-probe-bind-addr={probes}",
            f"--webhook-bind-addr={webhooks}",
            *("--kubeconfig", str(kubeconfig)),
            *("--simulation-file", str(scratch / "simulation.db")),
        )
        return Launch(command, f"http://{probes}/readyz", {"WEBHOOK_URL": f"https://{webhooks}"})


class ControllerRuntime:
    """The bare Go operator of ``peers/controller-runtime``, built by the machine's Go."""

    name = "controller-runtime"

    @property
    def program(self) -> Path:
        """Return where the built program is kept from one run to the next."""
        return Home.default().cache / "bench" / "controller-runtime"

    def prepare(self) -> None:
        """Build it; Go's own cache makes this quick when nothing changed."""
        try:
            go = find_go(Home.default().cache, Silent())
        except BuildFailed as missing:
            raise Unavailable(str(missing)) from missing
        flags = ("-buildvcs=false", "-trimpath", "-ldflags=-s -w")
        built = subprocess.run(
            [str(go), "build", *flags, "-o", str(self.program), "."],
            cwd=PEERS / "controller-runtime",
            env={**os.environ, "CGO_ENABLED": "0"},
            capture_output=True,
            text=True,
            check=False,
        )
        if built.returncode:
            raise Unavailable(f"go build failed: {built.stderr.strip()[-1000:]}")

    def launch(self, kubeconfig: Path, scratch: Path) -> Launch:  # noqa: ARG002 - keeps nothing
        """Start it with its sixteen workers."""
        (probes,) = _addresses(1)
        command = (
            str(self.program),
            f"--kubeconfig={kubeconfig}",
            f"--health-probe-bind-addr={probes}",
        )
        return Launch(command, f"http://{probes}/readyz")


class Kopf:
    """The kopf operator of ``peers/kopf_operator.py``, by an interpreter that may be its own."""

    name = "kopf"

    @property
    def python(self) -> Path:
        """Return the interpreter that has kopf: $BENCH_PYTHON, .venv-bench's, or this one."""
        own = REPOSITORY / ".venv-bench" / "bin" / "python"
        default = own if own.exists() else sys.executable
        return Path(os.environ.get("BENCH_PYTHON") or default)

    def prepare(self) -> None:
        """Look whether the interpreter has kopf."""
        if not _succeeds(self.python, "-c", "import kopf, uvloop"):
            raise Unavailable(f"{self.python} has no kopf with uvloop; set BENCH_PYTHON")

    def launch(self, kubeconfig: Path, scratch: Path) -> Launch:  # noqa: ARG002 - keeps nothing
        """Start it without peering and without a log line per object."""
        (probes,) = _addresses(1)
        url = f"http://{probes}/healthz"
        command = (
            *(str(self.python), "-m", "kopf", "run", "--standalone", "--all-namespaces"),
            *("--quiet", f"--liveness={url}", str(PEERS / "kopf_operator.py")),
        )
        return Launch(command, url, {"KUBECONFIG": str(kubeconfig)})


OURS: Contender = NovaCron()
YARDSTICK: Contender = ControllerRuntime()
CONTENDERS: Mapping[str, Contender] = {each.name: each for each in (OURS, YARDSTICK, Kopf())}


def _addresses(count: int) -> list[str]:
    ports: list[int] = []
    while len(ports) < count:
        ports.append(free_port(ports))
    return [f"{LOOPBACK}:{port}" for port in ports]


def _succeeds(program: Path, *arguments: str) -> bool:
    if not program.exists():
        return False
    command = [str(program), *arguments]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
