"""System packages: which are missing, and how this machine installs them.

The list is short on purpose: only what a build of Kubernetes really needs and a bare system
may lack.
"""

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from novacron.localcluster.errors import LocalClusterError
from novacron.localcluster.golang import machine_go

__all__ = ["Package", "install", "install_command", "missing_for_build"]

AUTHORITIES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
INSTALLERS = {
    "apt-get": ("apt-get", "install", "-y"),
    "dnf": ("dnf", "install", "-y"),
    "zypper": ("zypper", "--non-interactive", "install"),
    "apk": ("apk", "add"),
    "pacman": ("pacman", "-S", "--noconfirm"),
}


@dataclass(frozen=True, slots=True)
class Package:
    """A package of the system, and what it is needed for."""

    name: str
    purpose: str
    present: Callable[[], bool]


def _have_authorities() -> bool:
    given = os.environ.get("SSL_CERT_FILE")
    return any(Path(place).exists() for place in (*AUTHORITIES, *([given] if given else [])))


def _can_make_environments() -> bool:
    return machine_go() is not None or importlib.util.find_spec("ensurepip") is not None


FOR_BUILD = (
    Package("ca-certificates", "Go checks who it downloads from", _have_authorities),
    Package("python3-venv", "Go comes from PyPI when the machine has none", _can_make_environments),
)


def missing_for_build() -> list[Package]:
    """Return the packages without which Kubernetes cannot be built here."""
    return [package for package in FOR_BUILD if not package.present()]


def install_command(packages: Sequence[Package]) -> tuple[str, ...] | None:
    """Return the command that installs them, to be run as root; None on an unknown system."""
    for program, command in INSTALLERS.items():
        if shutil.which(program):
            return (*command, *(package.name for package in packages))
    return None


def install(packages: Sequence[Package], tell: Callable[[str], None]) -> None:
    """Install them, each named beforehand; say the exact command when this user may not."""
    names = ", ".join(f"{package.name} ({package.purpose})" for package in packages)
    command = install_command(packages)
    if command is None:
        raise LocalClusterError(f"missing system packages: {names}; install them and try again")
    prefix = _as_root()
    if prefix is None:
        raise LocalClusterError(
            f"missing system packages: {names}; this user may not install them, "
            f"so run `sudo {' '.join(command)}` and try again"
        )
    tell(f"installing {names}")
    done = subprocess.run([*prefix, *command], capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise LocalClusterError(f"`{' '.join(command)}` failed: {said[-1]}")


def _as_root() -> tuple[str, ...] | None:
    if os.geteuid() == 0:
        return ()
    sudo = shutil.which("sudo")
    if (
        sudo
        and subprocess.run([sudo, "-n", "true"], capture_output=True, check=False).returncode == 0
    ):
        return (sudo, "-n")
    return None
