"""The Kubernetes programs: ready-made ones, cached ones, or a build of our own.

A directory in the cache is complete or absent: programs are built beside it and moved there
in one step.
"""

import hashlib
import os
import re
import subprocess
from pathlib import Path

from novacron.localcluster.build import GOMOD, PROGRAMS, VERSION, build
from novacron.localcluster.errors import BuildFailed
from novacron.workplace.lock import holding
from novacron.workplace.progress import Progress

__all__ = ["BIN_VARIABLE", "cached", "check", "complete", "locate"]

BIN_VARIABLE = "NOVACRON_KUBERNETES_BIN"
OLDEST = (1, 30)


def locate(cache: Path, given: Path | None, progress: Progress) -> Path:
    """Return a directory with all programs, building them only if nothing else serves."""
    ready_made = given or _from_environment()
    if ready_made:
        check(ready_made)
        return ready_made.absolute()
    directory = cached(cache)
    if not complete(directory):

        def tell() -> None:
            progress.say("another build is under way; waiting for it")

        with holding(cache / "build.lock", "build", on_wait=tell):
            if not complete(directory):
                build(directory, cache, progress)
    return directory


def cached(cache: Path) -> Path:
    """Return where the cache keeps the programs that our sources make."""
    digest = hashlib.sha256((GOMOD / "go.sum").read_bytes()).hexdigest()[:12]
    return cache / f"kubernetes-v{VERSION}-{digest}"


def complete(directory: Path) -> bool:
    """Say whether every program is there."""
    return all(os.access(directory / name, os.X_OK) for name in PROGRAMS)


def check(directory: Path) -> None:
    """Make sure that ready-made programs are there, run, and are new enough."""
    missing = [name for name in PROGRAMS if not os.access(directory / name, os.X_OK)]
    if missing:
        raise BuildFailed(f"{directory} lacks {', '.join(missing)}")
    for name in PROGRAMS:
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
