"""Where a control plane keeps what it owns; cheap to ask, because every command asks."""

from dataclasses import dataclass
from pathlib import Path

from novacron.localcluster.ports import Ports
from novacron.localcluster.processes import Processes

__all__ = ["ADMIN", "API_ADDRESS", "API_SERVER_USER", "CLUSTER_NAME", "NODE_NAME", "Layout"]

ADMIN = "admin"
CLUSTER_NAME = "novacron"
NODE_NAME = "novacron-local"
# As whom the API server asks the node for logs.
API_SERVER_USER = "kube-apiserver-kubelet-client"
# The first of the addresses of Services, which Kubernetes gives to its own API server.
API_ADDRESS = "10.96.0.1"


@dataclass(frozen=True, slots=True)
class Layout:
    """The directory of one control plane."""

    directory: Path

    @property
    def pki(self) -> Path:
        """Return where the cluster's certificates lie."""
        return self.directory / "pki"

    @property
    def etcd_data(self) -> Path:
        """Return where the objects of the cluster are stored."""
        return self.directory / "etcd"

    @property
    def node(self) -> Path:
        """Return where the node keeps its pods."""
        return self.directory / "node"

    @property
    def processes(self) -> Processes:
        """Return the records of the cluster's processes."""
        return Processes(self.directory / "run")

    @property
    def ports(self) -> Ports:
        """Return the remembered ports."""
        return Ports(self.directory / "ports.json")

    def kubeconfig(self, user: str = ADMIN) -> Path:
        """Return where a user's kubeconfig lies."""
        return self.directory / "kubeconfig" / f"{user}.kubeconfig"
