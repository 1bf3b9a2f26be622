"""System packages are installed by the system's own program, on fresh and on old machines."""

import pytest

from novacron.workplace.errors import WorkplaceError
from novacron.workplace.packages import Package, install, lacking

# Knows a package only once its lists were read; notes what it was asked.
APT = """#!/bin/sh
cd "$(dirname "$0")" || exit 1
echo "$*" >>asked
[ "$1" = update ] && : >lists
[ "$1" = update ] || [ -e lists ] && [ "$4" != broken ] && exit
echo "E: Unable to locate package $4" >&2
exit 100
"""
SUDO = '#!/bin/sh\nshift\nexec "$@"\n'
WANTED = Package("wanted", "the test wants it", lambda: False)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with apt-get, and a user who may become root."""
    for name, script in {"apt-get": APT, "sudo": SUDO}.items():
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def _asked(machine) -> list[str]:
    return (machine / "asked").read_text().splitlines()


def test_a_machine_with_lists_is_asked_once(machine):
    """Reading lists takes longer than most installations."""
    (machine / "lists").touch()
    install([WANTED], lambda _: None)
    assert _asked(machine) == ["install -y --no-install-recommends wanted"]


def test_a_fresh_machine_reads_its_lists_first(machine):
    """An image of a system comes without any."""
    install([WANTED], lambda _: None)
    command = "install -y --no-install-recommends wanted"
    assert _asked(machine) == [command, "update", command]


def test_a_package_nobody_has_is_one_sentence(machine):
    """With the command and what it said."""
    with pytest.raises(WorkplaceError) as raised:
        install([Package("broken", "the test wants it", lambda: False)], lambda _: None)
    assert "Unable to locate package broken" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_package_is_present_when_its_program_is(machine):
    """Also a program that only root's PATH leads to."""
    there = Package.with_program("apt-get", "apt", "it installs")
    missing = Package.with_program("no-such-program", "none", "it does nothing")
    assert lacking([there, missing]) == [missing]
