"""Bringing everything up: programs, control plane, kinds, operator, a first machine.

Every step looks at what is there and does only what is missing, so the same call sets up,
repairs and confirms.
"""

import asyncio
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import click

from novacron.cli.crd import install_crds
from novacron.cli.display import Display
from novacron.cli.local import Adopted
from novacron.cli.manifests import apply_all
from novacron.cli.operator import OPERATOR_USER, OperatorProcess
from novacron.cli.session import connected
from novacron.cli.target import Target
from novacron.cli.welcome import FIRST_MACHINE, welcome
from novacron.cli.wiring import Wiring
from novacron.localcluster.binaries import BIN_VARIABLE, cached, complete, locate
from novacron.localcluster.controlplane import ControlPlane
from novacron.localcluster.home import Home
from novacron.localcluster.packages import install, missing_for_build

__all__ = ["Up"]

LOOPBACK_HOSTS = frozenset(("127.0.0.1", "::1", "localhost"))


@dataclass(frozen=True, slots=True)
class Up:
    """One call of ``novacron up``."""

    home: Home
    wiring: Wiring
    families: Sequence[str]
    display: Display
    kubernetes_bin: Path | None = None
    assume_yes: bool = False

    def local(self) -> None:
        """Bring up a control plane of our own and everything on it."""
        self._packages()
        with self.display.step("Kubernetes programs") as progress:
            binaries = locate(self.home.cache, self.kubernetes_bin, progress)
        plane = ControlPlane(self.home.cluster, binaries)
        with self.display.step("Control plane") as progress:
            started = plane.start(progress)
        Adopted.path(self.home).unlink(missing_ok=True)
        target = Target(plane.kubeconfig)
        self._install(target)
        changed = self._operator(plane.client_certificate(OPERATOR_USER), [], webhooks=True)
        self._welcome(target, self.home.cluster / "welcomed")
        self._farewell(changed=changed or bool(started), kubectl=binaries / "kubectl")

    def adopt(self, adopted: Adopted) -> None:
        """Use an existing cluster: our kinds in it, our operator beside it."""
        target = Target(Path(adopted.kubeconfig), adopted.context)
        server = self._install(target)
        adopted.write(self.home)
        # Only an API server on this machine can call back a process on this machine.
        near = urlsplit(server).hostname in LOOPBACK_HOSTS
        flags = [f"--context={adopted.context}"]
        changed = self._operator(Path(adopted.kubeconfig), flags, webhooks=near)
        self._welcome(target, self.home.state / f"welcomed-{adopted.context.replace('/', '_')}")
        self._farewell(changed=changed, kubectl=None)

    def _packages(self) -> None:
        ready_made = self.kubernetes_bin or os.environ.get(BIN_VARIABLE)
        if ready_made or complete(cached(self.home.cache)):
            return
        missing = missing_for_build()
        for package in missing:
            click.echo(f"missing system package: {package.name} ({package.purpose})")
        if missing and not self.assume_yes and sys.stdin.isatty():
            click.confirm("Install now?", default=True, abort=True)
        if missing:
            install(missing, click.echo)

    def _install(self, target: Target) -> str:
        """Install kinds and roles; return where the API server is."""

        async def apply() -> str:
            async with connected(target) as client:
                await install_crds(client, self.wiring.crds(self.families))
                await apply_all(client, self.wiring.rbac(self.families))
                return client.connection.server

        with self.display.step("Kinds and roles"):
            return asyncio.run(apply())

    def _operator(self, kubeconfig: Path, flags: Sequence[str], *, webhooks: bool) -> bool:
        wanted = [f"--families={','.join(self.families)}", *flags]
        process = OperatorProcess(self.home)
        with self.display.step("Operator"):
            return process.start(self.wiring.operator, kubeconfig, wanted, webhooks=webhooks)

    def _welcome(self, target: Target, marker: Path) -> None:
        async def give() -> None:
            with self.display.step("First virtual machine") as progress:
                async with connected(target) as client:
                    await welcome(client, marker, progress)

        asyncio.run(give())

    def _farewell(self, *, changed: bool, kubectl: Path | None) -> None:
        click.echo("\nThe cluster is up." if changed else "\nThe cluster is already running.")
        novacron = called_as()
        on_path = shutil.which("kubectl")
        prefix = "kubectl" if on_path or not kubectl else f"{novacron} kubectl"
        hints = [
            *([f"export KUBECONFIG=$({novacron} kubeconfig)"] if kubectl else []),
            f"{prefix} get virtualmachines.novacron.io",
            f"{novacron} vm describe {FIRST_MACHINE}",
            f"{novacron} vm create web --image builtin://tiny --wait",
            f"{novacron} status",
            f"{novacron} down",
        ]
        click.echo("Type next:\n" + "\n".join(f"  {hint}" for hint in hints))
        if kubectl and not on_path:
            click.echo(f"kubectl is not on your PATH; ours is {kubectl}")


def called_as() -> str:
    """Return what to type to call us again: our name if a shell finds it, or else the path."""
    found = shutil.which("novacron")
    called = Path(sys.argv[0])
    if found and called.exists() and Path(found).samefile(called):
        return "novacron"
    return str(called)
