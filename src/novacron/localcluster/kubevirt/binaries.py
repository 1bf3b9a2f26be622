"""KubeVirt's programs, built from the Go module proxy as Kubernetes is.

``manifests`` is ours: it prints the objects that virt-operator would create, from its own code.
"""

from pathlib import Path

from novacron.localcluster.build import provide
from novacron.localcluster.recipe import Recipe
from novacron.workplace.progress import Progress

__all__ = ["KUBEVIRT", "VERSION", "is_built", "locate"]

VERSION = "1.6.0"
COMMANDS = ("virt-api", "virt-controller", "virtctl")


def _stamps() -> tuple[str, ...]:
    facts = {"gitVersion": f"v{VERSION}", "gitTreeState": "clean"}
    return tuple(f"kubevirt.io/client-go/version.{name}={fact}" for name, fact in facts.items())


KUBEVIRT = Recipe(
    "KubeVirt",
    VERSION,
    Path(__file__).parent / "gomod",
    ("./manifests", *(f"kubevirt.io/kubevirt/cmd/{name}" for name in COMMANDS)),
    _stamps(),
)


def locate(cache: Path, progress: Progress) -> Path:
    """Return a directory with all programs, built if need be."""
    return provide(KUBEVIRT, cache, progress)


def is_built(cache: Path) -> bool:
    """Say whether the cache has all programs."""
    return not KUBEVIRT.missing(KUBEVIRT.directory(cache))
