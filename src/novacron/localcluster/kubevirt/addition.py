"""KubeVirt added to a control plane: brought up, mended and stopped as one thing."""

import asyncio
import ssl
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from novacron.localcluster.controlplane import ControlPlane
from novacron.localcluster.errors import PortTaken
from novacron.localcluster.kubevirt import imports, objects
from novacron.localcluster.kubevirt.applying import apply_all, conditions_hold
from novacron.localcluster.kubevirt.manifests import Manifests
from novacron.localcluster.kubevirt.names import (
    API,
    CONTROLLER,
    KUBEVIRTS,
    NAMESPACE,
    NODES,
    PROGRAMS,
)
from novacron.localcluster.kubevirt.presence import note_added
from novacron.localcluster.kubevirt.programs import authority, program
from novacron.localcluster.probe import answers
from novacron.runtime.client import Client
from novacron.workplace.progress import Progress, Silent

__all__ = ["KubeVirt"]

PROBE = "/healthz"
READY_WITHIN = timedelta(seconds=90)
ATTEMPTS = 3
SILENT = Silent()


@dataclass(frozen=True)
class KubeVirt:
    """KubeVirt's programs beside those of one control plane, and so many stand-in nodes.

    With ``imports`` there are DataVolumes too, as if CDI were installed.

    The control plane runs before this starts, with controller manager and scheduler and with
    ``flags.FLAGS``, and is stopped after it.
    """

    plane: ControlPlane
    binaries: Path
    nodes: int = 3
    imports: bool = False

    def start(self, progress: Progress = SILENT) -> list[str]:
        """Bring up or mend everything; return which programs were started."""
        note_added(self.plane.directory)
        manifests = Manifests.of(self.binaries)
        asyncio.run(self._install(manifests))
        progress.count("components ready", 1, len(PROGRAMS) + 1)
        started = self._launch(NODES, progress)
        started += self._launch(API, progress)
        asyncio.run(self._open(manifests))
        started += self._launch(CONTROLLER, progress)
        asyncio.run(self._greet())
        return started

    def stop(self) -> list[str]:
        """Stop the programs; what they wrote stays in the cluster."""
        return [name for name in reversed(PROGRAMS) if self.plane.processes.stop(name)]

    def ready(self, name: str) -> bool:
        """Ask a program itself whether it can serve."""
        trusted = authority(self.plane).pair.certificate
        context = ssl.create_default_context(cafile=str(trusted))
        return answers(self.plane.ports.read().get(name), PROBE, context)

    def _launch(self, name: str, progress: Progress) -> list[str]:
        """Start one program and wait for it; a port that was taken meanwhile is chosen anew."""
        for attempt in range(1, ATTEMPTS + 1):
            # One that runs with no port to be reached by is older than that port: it starts anew.
            known = name in self.plane.ports.read()
            if not known or not self.plane.processes.running(name):
                self.plane.ports.claim(name, anew=attempt > 1)
            ports = self.plane.ports.read()
            more = [f"--nodes={self.nodes}", *(["--imports"] if self.imports else [])]
            wanted = program(name, self.plane, self.binaries, ports, more)
            started = self.plane.processes.start(wanted)
            try:
                self.plane.processes.wait_ready(name, lambda: self.ready(name), READY_WITHIN)
            except PortTaken:
                self.plane.processes.stop(name)
                if attempt == ATTEMPTS:
                    raise
                continue
            progress.count("components ready", PROGRAMS.index(name) + 2, len(PROGRAMS) + 1)
            return [name] if started else []
        raise AssertionError("unreachable")

    async def _install(self, manifests: Manifests) -> None:
        """Write all that must be there before the programs start."""
        trusted = authority(self.plane).pair.certificate
        definitions = [*manifests.definitions, objects.NETWORKS]
        definitions += imports.DEFINITIONS if self.imports else ()
        async with Client.from_kubeconfig(self.plane.kubeconfig) as client:
            await apply_all(client, [objects.namespace()])
            early = [*manifests.rights, *objects.storage(), objects.trust(trusted)]
            await apply_all(client, [*definitions, *early])
            await conditions_hold(client, definitions, "Established")
            profiles = imports.profiles() if self.imports else []
            await apply_all(client, [objects.settings(), *profiles])
            status = {"status": objects.STATUS}
            await client.patch(KUBEVIRTS, "kubevirt", status, NAMESPACE, subresource="status")

    async def _open(self, manifests: Manifests) -> None:
        """Lead the API server to virt-api, now that it answers."""
        port = self.plane.ports.read()[API]
        trusted = authority(self.plane).pair.certificate
        async with Client.from_kubeconfig(self.plane.kubeconfig) as client:
            await apply_all(client, objects.address(port))
            await apply_all(client, manifests.doors(trusted))
            served = [door for door in manifests.doors(trusted) if door["kind"] == "APIService"]
            await conditions_hold(client, served, "Available")

    async def _greet(self) -> None:
        """Wait until the nodes are there."""
        async with Client.from_kubeconfig(self.plane.kubeconfig) as client:
            await conditions_hold(client, objects.nodes(self.nodes), "Ready")
