"""Somebody without rights on the machine that runs the tests as root."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import novacron
from guest_images import built_in
from local_cluster import DEADLINE_SECONDS, processes_under
from rights import ROOT

__all__ = ["NOBODY", "OrdinaryUser", "ordinary_user"]

NOBODY = 65534


@contextmanager
def ordinary_user(kubernetes_binaries: Path | None = None) -> Iterator["OrdinaryUser"]:
    """Have one, who gets what root has in its cache; skips where there is none to be had."""
    python = _python_of_others()
    if not ROOT or python is None:
        pytest.skip("either everything runs as an ordinary user already, or no Python is theirs")
    with tempfile.TemporaryDirectory(prefix="nova-user-") as directory:
        user = OrdinaryUser(Path(directory), python, kubernetes_binaries)
        yield user
        assert processes_under(user.home) == []


def _python_of_others() -> str | None:
    """Return a Python that other users may run and that our modules were compiled for."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    ours = Path(sys.executable).resolve()
    if all(directory.stat().st_mode & 0o1 for directory in ours.parents):
        return str(ours)
    return shutil.which(version, path="/usr/local/bin:/usr/bin")


class OrdinaryUser:
    """Somebody with a home directory and no rights."""

    def __init__(self, home: Path, python: str, binaries: Path | None) -> None:
        self.home = home
        environment = home / "environment"
        subprocess.run([python, "-m", "venv", "--without-pip", environment], check=True)
        self.python = environment / "bin" / "python"
        modules = next((environment / "lib").glob("python*/site-packages"))
        places = (Path(pytest.__file__).parents[1], Path(novacron.__file__).parents[1])
        (modules / "ours.pth").write_text("\n".join(map(str, places)))
        image = built_in("tiny")
        assert image is not None
        for source in (*(binaries.iterdir() if binaries else ()), image):
            _lend(source, home / ("cache" if source.suffix else "kubernetes") / source.name)
        for directory in (home, home / "cache"):
            os.chown(directory, NOBODY, NOBODY)

    def call(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Type a command."""
        return self.run("-m", "novacron.app.entry", *arguments)

    def run(self, *arguments: str, path: Path | None = None) -> "subprocess.CompletedProcess[str]":
        """Run Python, with more modules from a directory."""
        return subprocess.run(
            [self.python, *arguments],
            env={
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "HOME": str(self.home),
                "NOVACRON_HOME": str(self.home / "state"),
                "NOVACRON_CACHE": str(self.home / "cache"),
                "NOVACRON_KUBERNETES_BIN": str(self.home / "kubernetes"),
                "PYTHONDONTWRITEBYTECODE": "1",
                **({"PYTHONPATH": str(path)} if path else {}),
            },
            cwd=self.home,
            user=NOBODY,
            group=NOBODY,
            extra_groups=(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE_SECONDS,
        )


def _lend(source: Path, target: Path) -> None:
    target.parent.mkdir(exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copy(source, target)
