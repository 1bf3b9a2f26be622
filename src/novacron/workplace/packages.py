"""System packages: what they are needed for, and how this machine installs them."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from novacron.workplace.errors import WorkplaceError
from novacron.workplace.programs import find_program

__all__ = ["Package", "install", "install_command", "lacking"]

INSTALLERS = {
    "apt-get": ("apt-get", "install", "-y", "--no-install-recommends"),
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

    @classmethod
    def with_program(cls, program: str, name: str, purpose: str) -> "Package":
        """Return the package that a program comes with."""
        return cls(name, purpose, lambda: find_program(program) is not None)


def lacking(packages: Iterable[Package]) -> list[Package]:
    """Return those of the packages that this machine does not have."""
    return [package for package in packages if not package.present()]


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
        raise WorkplaceError(f"missing system packages: {names}; install them and try again")
    prefix = _as_root()
    if prefix is None:
        raise WorkplaceError(
            f"missing system packages: {names}; this user may not install them, "
            f"so run `sudo {' '.join(command)}` and try again"
        )
    tell(f"installing {names}")
    done = _run((*prefix, *command))
    if done.returncode and command[0] == "apt-get":
        # A fresh machine has no lists of packages yet, an old one lists what is no longer there.
        _run((*prefix, "apt-get", "update"))
        done = _run((*prefix, *command))
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise WorkplaceError(f"`{' '.join(command)}` failed: {said[-1]}")


def _run(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


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
