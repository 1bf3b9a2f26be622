"""The scripts of the guest are sound before a guest is started with them."""

import subprocess

import pytest

from novacron.guests.tiny.tree import FILES
from novacron.workplace.packages import Package, install, lacking

AWK = ".awk"
SCRIPTS = sorted(
    path
    for path in FILES.rglob("*")
    if path.is_file()
    and path.suffix != AWK
    and (path.suffix == ".sh" or path.read_bytes().startswith(b"#!"))
)
# Sourced files lie elsewhere in the guest; words are split on purpose; busybox has `read -t`; and
# udhcpc gives its findings in the environment.
SHELLCHECK = Package.with_program("shellcheck", "shellcheck", "scripts are checked with it")
ALLOWED = "SC1091,SC2046,SC2154,SC3045"


def test_there_are_scripts():
    """Otherwise the tests below say nothing."""
    assert len(SCRIPTS) > 15


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_can_be_parsed(script):
    """A slip of the pen would show only in the one guest that takes that path."""
    done = subprocess.run(["sh", "-n", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_shellcheck_finds_nothing():
    """It knows pitfalls that a parser does not."""
    if missing := lacking([SHELLCHECK]):
        install(missing, print)
    command = ["shellcheck", "--shell=dash", "--severity=warning", f"--exclude={ALLOWED}", *SCRIPTS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
