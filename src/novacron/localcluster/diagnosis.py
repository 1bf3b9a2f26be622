"""Why a Go build failed, in one sentence with the command that repairs it."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from novacron.localcluster.recipe import Recipe

__all__ = ["diagnose"]

UNREACHABLE = ("dial tcp", "no such host", "i/o timeout", "TLS handshake timeout", "Bad Gateway")
DAMAGED_MODULES = ("checksum mismatch", "SECURITY ERROR", "not a valid zip file", "zip:")
DAMAGED_BUILDS = ("go-build", "build cache", "GOCACHE")
UNUSABLE = "failed to initialize build cache"
NO_SPACE = "no space left on device"


def diagnose(go: Path, recipe: Recipe, environment: Mapping[str, str], said: Sequence[str]) -> str:
    """Return what is wrong; our sources are pinned, so it is the machine and not the code."""
    text = "\n".join(said)
    last = next((line.strip() for line in reversed(said) if line.strip()), "it said nothing")
    if NO_SPACE in text:
        return f"the disk is full: Go could not write its build ({last})"
    if any(sign in text for sign in DAMAGED_MODULES) or _modified(go, recipe.module, environment):
        return f"Go's module cache is damaged; empty it with `{go} clean -modcache` and try again"
    if any(sign in text for sign in UNREACHABLE):
        return f"Go could not download {recipe.title}; check GOPROXY and the network ({last})"
    if UNUSABLE in text:
        return f"Go cannot use its build cache; point GOCACHE at a directory of your own ({last})"
    if any(sign in text for sign in DAMAGED_BUILDS):
        return (
            f"Go's build cache is damaged; empty it with `{go} clean -cache` and try again ({last})"
        )
    return f"Go could not build {recipe.title}: {last}"


def _modified(go: Path, directory: Path, environment: Mapping[str, str]) -> bool:
    done = subprocess.run(
        [go, "mod", "verify"],
        cwd=directory,
        env=dict(environment),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode != 0 and "modified" in done.stdout + done.stderr
