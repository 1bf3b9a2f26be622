"""The Kubernetes programs: ready-made ones, cached ones, or a build of our own."""

import os
import re
import subprocess
from pathlib import Path

from novacron.localcluster.build import provide
from novacron.localcluster.errors import BuildFailed
from novacron.localcluster.recipe import Recipe
from novacron.workplace.progress import Progress

__all__ = ["BIN_VARIABLE", "KUBERNETES", "cached", "check", "complete", "locate"]

BIN_VARIABLE = "NOVACRON_KUBERNETES_BIN"
OLDEST = (1, 30)
VERSION = "1.34.4"
COMMANDS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")


def _stamps() -> tuple[str, ...]:
    major, minor, _ = VERSION.split(".")
    facts = {"gitVersion": f"v{VERSION}", "gitMajor": major, "gitMinor": minor}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return tuple(f"{package}.{name}={fact}" for package in packages for name, fact in facts.items())


KUBERNETES = Recipe(
    "Kubernetes",
    VERSION,
    Path(__file__).parent / "gomod",
    ("./etcd", *(f"k8s.io/kubernetes/cmd/{name}" for name in COMMANDS)),
    _stamps(),
)


def locate(cache: Path, given: Path | None, progress: Progress) -> Path:
    """Return a directory with all programs, building them only if nothing else serves."""
    ready_made = given or _from_environment()
    if ready_made:
        check(ready_made)
        return ready_made.absolute()
    return provide(KUBERNETES, cache, progress)


def cached(cache: Path) -> Path:
    """Return where the cache keeps the programs that our sources make."""
    return KUBERNETES.directory(cache)


def complete(directory: Path) -> bool:
    """Say whether every program is there."""
    return not KUBERNETES.missing(directory)


def check(directory: Path) -> None:
    """Make sure that ready-made programs are there, run, and are new enough."""
    missing = KUBERNETES.missing(directory)
    if missing:
        raise BuildFailed(f"{directory} lacks {', '.join(missing)}")
    for name in KUBERNETES.programs:
        if name != "etcd":
            _check_version(directory / name)


def _from_environment() -> Path | None:
    given = os.environ.get(BIN_VARIABLE)
    return Path(given) if given else None


def _check_version(program: Path) -> None:
    question = ["version", "--client"] if program.name == "kubectl" else ["--version"]
    try:
        done = subprocess.run(
            [program, *question], capture_output=True, text=True, check=False, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildFailed(f"{program} does not run: {error}") from error
    found = re.search(r"v(\d+)\.(\d+)\.\d+", done.stdout)
    if done.returncode or not found:
        raise BuildFailed(f"{program} does not tell its Kubernetes version")
    if (int(found[1]), int(found[2])) < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        raise BuildFailed(f"{program} is {found[0]}; version {wanted} or later is needed")
