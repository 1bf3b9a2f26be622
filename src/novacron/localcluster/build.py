"""Building the Kubernetes programs from the Go module beside this file.

go.mod and go.sum pin every source file, so a build needs no trust in the proxy it downloads
from, and a compiler error can only mean a damaged cache.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from novacron.localcluster.diagnosis import diagnose
from novacron.localcluster.errors import BuildFailed
from novacron.localcluster.golang import find_go
from novacron.workplace.progress import Progress

__all__ = ["GOMOD", "PROGRAMS", "VERSION", "build"]

GOMOD = Path(__file__).parent / "gomod"
VERSION = "1.34.4"
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
SCRATCH = ".building-"
DOWNLOADING = "go: downloading "


def build(directory: Path, cache: Path, progress: Progress) -> None:
    """Build every program into the directory, which appears only when all are there.

    The caller holds the lock of the cache.
    """
    progress.say("looking for Go")
    go = find_go(cache, progress)
    packages = [f"k8s.io/kubernetes/cmd/{name}" for name in PROGRAMS if name != "etcd"]
    packages.append("./etcd")
    progress.say("downloading the sources of Kubernetes")
    total = len(_run(go, ["list", "-deps", *packages], progress, "modules", _modules()))
    progress.say(f"building Kubernetes v{VERSION} (once; several minutes)")
    _sweep(directory.parent)
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=SCRATCH) as scratch:
        target = Path(scratch) / "bin"
        target.mkdir()
        flags = ["-trimpath", "-v", "-ldflags", _link_flags(), "-o", f"{target}/"]
        _run(go, ["build", *flags, *packages], progress, "packages", total)
        _move_into_place(target, directory)


def _sweep(cache: Path) -> None:
    """Remove what builds left that were killed; the caller holds the cache's lock."""
    for left in cache.glob(f"{SCRATCH}*"):
        shutil.rmtree(left, ignore_errors=True)


def _move_into_place(target: Path, directory: Path) -> None:
    if directory.exists():
        # Something took programs out of it; it goes with the rest of the scratch directory.
        directory.rename(target.with_name("incomplete"))
    target.rename(directory)


def _link_flags() -> str:
    major, minor, _ = VERSION.split(".")
    facts = {"gitVersion": f"v{VERSION}", "gitMajor": major, "gitMinor": minor}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    stamps = [f"-X {package}.{name}={fact}" for package in packages for name, fact in facts.items()]
    return " ".join(["-s", "-w", *stamps])


def _modules() -> int:
    sums = (GOMOD / "go.sum").read_text().splitlines()
    return sum(1 for line in sums if "/go.mod " not in line)


def _run(
    go: Path, arguments: Sequence[str], progress: Progress, what: str, total: int
) -> list[str]:
    """Run go, count what it says on its error output, return the lines it printed."""
    environment = {
        **os.environ,
        "CGO_ENABLED": "0",
        "GOWORK": "off",
        "GOTOOLCHAIN": "local",
        "GOFLAGS": f"{os.environ.get('GOFLAGS', '')} -buildvcs=false".strip(),
    }
    said: list[str] = []
    done = 0
    with (
        tempfile.TemporaryFile("w+") as printed,
        subprocess.Popen(
            [go, *arguments],
            cwd=GOMOD,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        ) as child,
    ):
        for line in child.stderr or ():
            said.append(line.rstrip())
            # A download says so; a built package says its name and nothing else.
            if line.startswith(DOWNLOADING) or (what == "packages" and " " not in line.strip()):
                done += 1
                progress.count(what, min(done, total), total)
        code = child.wait()
        printed.seek(0)
        lines = printed.read().splitlines()
    if code:
        raise BuildFailed(diagnose(go, GOMOD, environment, said))
    progress.count(what, total, total)
    return lines
