"""Which cluster ``novacron up`` last brought up; cheap to ask, because every command asks."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from novacron.localcluster.layout import CLUSTER_NAME, Layout
from novacron.workplace.files import write_private
from novacron.workplace.home import Home

__all__ = ["Adopted", "local_target"]


@dataclass(frozen=True, slots=True)
class Adopted:
    """An existing cluster that ``up --context`` uses instead of one of our own."""

    kubeconfig: str
    context: str

    @staticmethod
    def path(home: Home) -> Path:
        """Return where it is remembered."""
        return home.state / "adopted.json"

    @classmethod
    def read(cls, home: Home) -> "Adopted | None":
        """Return the remembered cluster, if any."""
        try:
            return cls(**json.loads(cls.path(home).read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def write(self, home: Home) -> None:
        """Remember this cluster."""
        if Adopted.read(home) != self:
            write_private(self.path(home), json.dumps(asdict(self)))


def local_target(context: str | None) -> tuple[Path | None, str | None]:
    """Return the kubeconfig and context to use when the user named no kubeconfig."""
    home = Home.default()
    adopted = Adopted.read(home)
    if adopted and context in (None, adopted.context):
        return Path(adopted.kubeconfig), adopted.context
    cluster = Layout(home.cluster)
    if context in (None, CLUSTER_NAME) and cluster.processes.running("kube-apiserver"):
        return cluster.kubeconfig(), context
    return None, context
