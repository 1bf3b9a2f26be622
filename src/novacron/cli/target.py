"""Which cluster a command is meant for."""

import os
from dataclasses import dataclass
from pathlib import Path

from novacron.cli.local import local_target

__all__ = ["Target"]


@dataclass(frozen=True, slots=True)
class Target:
    """Which cluster, and which namespace of it; None is whatever the kubeconfig says."""

    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str | None = None

    def resolved(self) -> "Target":
        """Return the target with the kubeconfig that stands in for none."""
        if self.kubeconfig or os.environ.get("KUBECONFIG"):
            return self
        kubeconfig, context = local_target(self.context)
        return Target(kubeconfig, context, self.namespace)
