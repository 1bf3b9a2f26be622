"""helm, built from the Go module proxy as Kubernetes is: a tool of tests and of ``make chart``."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from novacron.localcluster.build import provide
from novacron.localcluster.recipe import Recipe
from novacron.workplace.home import Home
from novacron.workplace.progress import Progress, Silent

__all__ = ["CHART", "HELM", "Helm", "HelmFailed", "built"]

REPOSITORY = Path(__file__).parents[2]
CHART = REPOSITORY / "charts/novacron"
VERSION = "3.22.0"
# The Kubernetes that helm renders for when it is not told of one; its own build sets these too.
KUBERNETES = {"k8sVersionMajor": "1", "k8sVersionMinor": "34"}
HELM = Recipe(
    "Helm",
    VERSION,
    Path(__file__).parent / "gomod",
    ("helm.sh/helm/v3/cmd/helm",),
    (
        f"helm.sh/helm/v3/internal/version.version=v{VERSION}",
        *(f"helm.sh/helm/v3/pkg/chartutil.{name}={fact}" for name, fact in KUBERNETES.items()),
        *(f"helm.sh/helm/v3/pkg/lint/rules.{name}={fact}" for name, fact in KUBERNETES.items()),
    ),
)
SILENT = Silent()
DEADLINE_SECONDS = 240


class HelmFailed(Exception):
    """helm ended with an error; the message is what it said."""


def built(progress: Progress = SILENT) -> Path:
    """Return the program, built if need be."""
    return provide(HELM, Home.default().cache, progress) / "helm"


@dataclass(frozen=True, slots=True)
class Helm:
    """helm with nothing of the user's: no plug-ins, no repositories, no cluster but the named."""

    program: Path
    home: Path
    kubeconfig: Path | None = None

    def run(self, *arguments: str) -> str:
        """Run a command that must succeed and return what it printed."""
        done = subprocess.run(
            [self.program, *arguments],
            env={**_own_environment(), **self._places()},
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE_SECONDS,
        )
        if done.returncode:
            raise HelmFailed(f"{done.stdout}{done.stderr}")
        return done.stdout

    def template(
        self, *arguments: str, namespace: str = "novacron-system", chart: Path = CHART
    ) -> str:
        """Render the chart as it would be installed."""
        return self.run("template", "novacron", str(chart), "-n", namespace, *arguments)

    def _places(self) -> dict[str, str]:
        places = {f"HELM_{name}_HOME": str(self.home) for name in ("CACHE", "CONFIG", "DATA")}
        return places | {"KUBECONFIG": str(self.kubeconfig or os.devnull)}


def _own_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("HELM_")}
