"""The Python binding of libvirt, compiled on this machine into the environment that runs us.

It is made from C against the machine's own libvirt, so it cannot be among what everybody installs;
the lock beside this package says which version, and which bytes.
"""

import importlib
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from novacron.localcluster.errors import LocalClusterError

__all__ = ["install", "present"]

LOCKS = Path(__file__).parents[1]
PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input")
HASHED = ("--require-hashes", "--no-deps")


def present() -> bool:
    """Say whether this environment has it."""
    return importlib.util.find_spec("libvirt") is not None


def install() -> None:
    """Compile it; its builder stays out of the environment."""
    with tempfile.TemporaryDirectory(prefix="novacron-binding-") as builder:
        _pip("--target", builder, *HASHED, "-r", str(LOCKS / "libvirt-build.lock"))
        flags = ("--no-build-isolation", *HASHED, "-r", str(LOCKS / "libvirt.lock"))
        _pip(*flags, path=builder)
    importlib.invalidate_caches()
    if not present():
        raise LocalClusterError(
            f"libvirt-python was installed, but not where {sys.executable} looks"
        )


def _pip(*arguments: str, path: str = "") -> None:
    done = subprocess.run(
        [sys.executable, *PIP, *arguments],
        env={**os.environ, **({"PYTHONPATH": path} if path else {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise LocalClusterError(
            f"the Python binding of libvirt could not be installed ({said[-1]}); try "
            f"`{sys.executable} -m pip install libvirt-python` to see more"
        )
