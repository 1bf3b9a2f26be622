"""How a tool of GitOps sees an object: what was declared beside what the cluster has."""

import subprocess
from collections.abc import Callable, Iterator
from typing import Any

from novacron.localcluster.controlplane import ControlPlane

__all__ = ["DIFFERENT", "difference_by_kubectl", "differences"]

# How kubectl diff ends when it has shown something.
DIFFERENT = 1
LOOKS = 20


def differences(wanted: Any, live: Any, path: str = "") -> Iterator[str]:
    """Return where Argo CD finds a difference: objects field by field, lists as a whole."""
    if isinstance(wanted, dict) and isinstance(live, dict):
        for name, value in wanted.items():
            yield from differences(value, live.get(name), f"{path}.{name}")
    elif wanted != live:
        yield f"{path}: {wanted} is {live}"


def difference_by_kubectl(
    plane: ControlPlane, how: tuple[str, ...], manifest: str, version: Callable[[], str]
) -> str:
    """Return what ``kubectl diff`` shows of an object that nobody wrote to while it looked.

    It reads the object and what the server would make of it one after the other, and takes what
    somebody writes in between for a difference.
    """
    for _ in range(LOOKS):
        before = version()
        command = [plane.binaries / "kubectl", "--kubeconfig", plane.kubeconfig, "diff", *how]
        done = subprocess.run(
            [*command, "-f", "-"], input=manifest, capture_output=True, text=True, check=False
        )
        assert done.returncode in (0, DIFFERENT), done.stderr
        if not done.returncode or version() == before:
            return done.stdout
    raise AssertionError(f"somebody wrote to it {LOOKS} times while kubectl looked")
