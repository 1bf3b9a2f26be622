"""Building programs from a Go module of ours.

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
from novacron.localcluster.recipe import Recipe
from novacron.workplace.lock import holding
from novacron.workplace.progress import Progress

__all__ = ["provide"]

SCRATCH = ".building-"
DOWNLOADING = "go: downloading "


def provide(recipe: Recipe, cache: Path, progress: Progress) -> Path:
    """Return the directory in the cache with all programs of a recipe, built if need be.

    It is complete or absent: programs are built beside it and moved there in one step.
    """
    directory = recipe.directory(cache)
    if recipe.missing(directory):

        def tell() -> None:
            progress.say("another build is under way; waiting for it")

        with holding(cache / "build.lock", "build", on_wait=tell):
            if recipe.missing(directory):
                _build(recipe, directory, progress)
    return directory


def _build(recipe: Recipe, directory: Path, progress: Progress) -> None:
    """Build every program into the directory; the caller holds the lock of the cache."""
    cache = directory.parent
    progress.say("looking for Go")
    go = find_go(cache, progress, recipe.module)
    progress.say(f"downloading the sources of {recipe.title}")
    needed = ["list", "-deps", *recipe.packages]
    total = len(_run(go, recipe, needed, progress, "modules", recipe.modules()))
    progress.say(f"building {recipe.title} v{recipe.version} (once; several minutes)")
    _sweep(cache)
    with tempfile.TemporaryDirectory(dir=cache, prefix=SCRATCH) as scratch:
        target = Path(scratch) / "bin"
        target.mkdir()
        flags = ["-trimpath", "-v", "-ldflags", recipe.link_flags(), "-o", f"{target}/"]
        _run(go, recipe, ["build", *flags, *recipe.packages], progress, "packages", total)
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


def _run(
    go: Path, recipe: Recipe, arguments: Sequence[str], progress: Progress, what: str, total: int
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
            cwd=recipe.module,
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
        raise BuildFailed(diagnose(go, recipe, environment, said))
    progress.count(what, total, total)
    return lines
