"""Bringing everything up: programs, hypervisor, control plane, kinds, operator, a first machine.

Every step looks at what is there and does only what is missing, so the same call sets up,
repairs and confirms.
"""

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import click

from novacron.cli.crd import install_crds
from novacron.cli.display import Display
from novacron.cli.farewell import farewell
from novacron.cli.local import Adopted
from novacron.cli.manifests import apply_all
from novacron.cli.operator import OPERATOR_USER, OperatorProcess
from novacron.cli.provider import Provider, remember
from novacron.cli.session import connected
from novacron.cli.target import Target
from novacron.cli.welcome import Welcomed, welcome
from novacron.cli.wiring import Wiring
from novacron.localcluster.binaries import BIN_VARIABLE, cached, complete, locate
from novacron.localcluster.controlplane import ControlPlane, Options
from novacron.localcluster.kubevirt.addition import KubeVirt
from novacron.localcluster.kubevirt.binaries import is_built
from novacron.localcluster.kubevirt.binaries import locate as locate_kubevirt
from novacron.localcluster.kubevirt.flags import FLAGS
from novacron.localcluster.kubevirt.presence import is_added
from novacron.localcluster.packages import missing_for_build
from novacron.workplace.home import Home
from novacron.workplace.packages import Package, install

__all__ = ["Up"]

KUBEVIRT = "kubevirt"
LOOPBACK_HOSTS = frozenset(("127.0.0.1", "::1", "localhost"))


@dataclass(frozen=True, slots=True)
class Up:
    """One call of ``novacron up``."""

    home: Home
    wiring: Wiring
    provider: Provider
    families: Sequence[str]
    display: Display
    minimum_memory: str
    kubernetes_bin: Path | None = None
    assume_yes: bool = False
    additions: Sequence[str] = ()

    def local(self) -> None:
        """Bring up a control plane of our own and everything on it."""
        self._install_packages([*self._for_build(), *self.provider.missing()])
        with self.display.step("Kubernetes programs") as progress:
            binaries = locate(self.home.cache, self.kubernetes_bin, progress)
        running = self.provider.prepare(self.display)
        flags = FLAGS if self._wants_kubevirt else {}
        plane = ControlPlane(self.home.cluster, binaries, Options(extra_flags=flags))
        with self.display.step("Control plane") as progress:
            started = plane.start(progress)
        Adopted.path(self.home).unlink(missing_ok=True)
        target = Target(plane.kubeconfig)
        self._install(target)
        started += self._add(plane)
        changed = self._operator(plane.client_certificate(OPERATOR_USER), [], webhooks=True)
        welcomed = self._welcome(target, self.home.cluster / "welcomed")
        changed = changed or bool(started) or running
        kubevirt = is_added(self.home.cluster)
        farewell(welcomed, changed=changed, kubectl=binaries / "kubectl", kubevirt=kubevirt)

    def adopt(self, adopted: Adopted) -> None:
        """Use an existing cluster: our kinds in it, our operator beside it."""
        target = Target(Path(adopted.kubeconfig), adopted.context)
        self._install_packages(self.provider.missing())
        server = self._install(target)
        adopted.write(self.home)
        running = self.provider.prepare(self.display)
        # Only an API server on this machine can call back a process on this machine.
        near = urlsplit(server).hostname in LOOPBACK_HOSTS
        flags = [f"--context={adopted.context}"]
        changed = self._operator(Path(adopted.kubeconfig), flags, webhooks=near)
        marker = f"welcomed-{adopted.context.replace('/', '_')}"
        welcomed = self._welcome(target, self.home.state / marker)
        farewell(welcomed, changed=changed or running, kubectl=None)

    def _add(self, plane: ControlPlane) -> list[str]:
        """Bring up what was asked for beside the cluster, now or earlier."""
        if not self._wants_kubevirt:
            return []
        with self.display.step("KubeVirt programs") as progress:
            programs = locate_kubevirt(self.home.cache, progress)
        with self.display.step("KubeVirt (real control plane, stand-in for nodes)") as progress:
            return KubeVirt(plane, programs).start(progress)

    @property
    def _wants_kubevirt(self) -> bool:
        return KUBEVIRT in self.additions or is_added(self.home.cluster)

    @property
    def _served(self) -> tuple[str, ...]:
        """The families to serve; who has KubeVirt here has it for its Machines."""
        added = ["viti"] if self._wants_kubevirt else []
        return tuple(dict.fromkeys((*self.families, *added)))

    def _for_build(self) -> list[Package]:
        ready_made = self.kubernetes_bin or os.environ.get(BIN_VARIABLE)
        here = bool(ready_made) or complete(cached(self.home.cache))
        here = here and not (self._wants_kubevirt and not is_built(self.home.cache))
        return [] if here else missing_for_build()

    def _install_packages(self, missing: Sequence[Package]) -> None:
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
                await install_crds(client, self.wiring.crds(self._served, self.minimum_memory))
                await apply_all(client, self.wiring.rbac(self._served))
                return client.connection.server

        with self.display.step("Kinds and roles"):
            return asyncio.run(apply())

    def _operator(self, kubeconfig: Path, flags: Sequence[str], *, webhooks: bool) -> bool:
        told = (*flags, *self.provider.operator_flags())
        wanted = [f"--families={','.join(self._served)}", *told]
        process = OperatorProcess(self.home)
        with self.display.step("Operator"):
            return process.start(self.wiring.operator, kubeconfig, wanted, webhooks=webhooks)

    def _welcome(self, target: Target, marker: Path) -> Welcomed:
        async def give() -> Welcomed:
            with self.display.step("First virtual machine") as progress:
                async with connected(target) as client:
                    hosts = self.provider.hosts()
                    return await welcome(client, marker, hosts, self.wiring.guest, progress)

        remember(self.home, self.provider)
        return asyncio.run(give())
