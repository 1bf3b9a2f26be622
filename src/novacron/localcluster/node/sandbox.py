"""What the containers of one pod share on this machine: address, namespace, relay, names."""

from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Interface
from pathlib import Path

from novacron.localcluster.layout import API_ADDRESS
from novacron.localcluster.node.launcher import hostname_of
from novacron.localcluster.node.network import API_PORT, PodNetwork
from novacron.localcluster.node.node_context import NodeContext
from novacron.localcluster.node.records import PodRecord
from novacron.localcluster.node.relay import Relay
from novacron.localcluster.ports import LOOPBACK
from novacron.runtime.resource import Object

__all__ = ["Sandbox"]

RESOLVER = Path("/etc/resolv.conf")
NO_RESOLVER = "# the local cluster has no name server\n"
API_NAMES = "kubernetes kubernetes.default kubernetes.default.svc"


@dataclass(slots=True)
class Sandbox:
    """One pod's, from the first container to the last."""

    node: NodeContext
    record: PodRecord
    _network: PodNetwork | None = None
    _shown: str = ""
    _stack: ExitStack = field(default_factory=ExitStack)

    @property
    def handle(self) -> int | None:
        """Return the pod's network namespace, or None for the machine's own."""
        return self._network.handle if self._network else None

    @property
    def address(self) -> str:
        """Return the pod's address."""
        return self.record.address or self.node.address

    async def open(self, pod: Object) -> None:
        """Make it, or take over what a process of the pod still is in."""
        if not pod["spec"].get("hostNetwork") and not self._network:
            await self._connect()
        self._shown = self.address

    async def _connect(self) -> None:
        if not self.node.network.subnet.has(self.record.address):
            self.record = replace(self.record, address=self.node.free_address()).write()
        network = self._attach()
        try:
            relay = Relay(self.node.connect)
            await relay.start(network.listen())
        except BaseException:
            network.close()
            raise
        self._stack.callback(network.close)
        self._stack.callback(relay.close)
        self._network = network

    def shown_address(self, pod: Object) -> str:
        """Return the address to tell, also when the pod has it no more."""
        return self._shown or str((pod.get("status") or {}).get("podIP") or "")

    def disconnect(self) -> None:
        """Take the pod off the network; its address stays its own."""
        self._stack.close()
        self._network = None

    def close(self) -> None:
        """Take the pod off the network and let others have its address."""
        self.disconnect()
        if self.record.address:
            self.record = replace(self.record, address="").write()

    def variables(self) -> dict[str, str]:
        """Return where the API server is, as every pod is told."""
        host, port = (API_ADDRESS, API_PORT) if self._network else (LOOPBACK, self.node.api_port)
        return {
            "KUBERNETES_SERVICE_HOST": host,
            "KUBERNETES_SERVICE_PORT": str(port),
            "KUBERNETES_SERVICE_PORT_HTTPS": str(port),
        }

    def files(self, pod: Object) -> dict[str, str]:
        """Return the files by which a pod knows names."""
        name = hostname_of(pod)
        lines = ["127.0.0.1 localhost", "::1 localhost", f"{self.address} {name}"]
        if self._network:
            lines.append(f"{API_ADDRESS} {API_NAMES}")
        aliases = pod["spec"].get("hostAliases") or ()
        lines += [f"{alias['ip']} {' '.join(alias.get('hostnames') or ())}" for alias in aliases]
        # Only whoever shares the machine's network can reach its name servers.
        resolver = NO_RESOLVER if self._network or not RESOLVER.exists() else RESOLVER.read_text()
        return {
            "etc/hosts": "\n".join(lines) + "\n",
            "etc/hostname": f"{name}\n",
            "etc/resolv.conf": resolver,
        }

    def _attach(self) -> PodNetwork:
        starts = (container.start() for container in self.record.containers())
        alive = next((start for start in starts if start and start.keeper.alive()), None)
        network = self.node.network
        if alive:
            return network.adopt(self.record.uid, alive.keeper.pid)
        prefix = network.subnet.network.prefixlen
        return network.attach(self.record.uid, IPv4Interface(f"{self.record.address}/{prefix}"))
