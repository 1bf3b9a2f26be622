"""Everything `up` needs is looked at, and each fault comes with its remedy."""

import os
import subprocess
import sys

import pytest

from novacron.localcluster.doctor import examine
from novacron.workplace.errors import WorkplaceError
from novacron.workplace.home import Home
from novacron.workplace.packages import Package, install
from open_directories import open_to_others

NOBODY = 65534
# Modules are loaded before the rights are given up: an interpreter may lie in root's home.
WITHOUT_ROOT = f"""
import os, shutil, subprocess, sys
from novacron.workplace.packages import Package, install
if os.geteuid() == 0:
    os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
try:
    install([Package("no-such-package", "the test wants it", lambda: False)], print)
except Exception as error:
    sys.exit(str(error))
"""


@pytest.fixture
def tools(tmp_path):
    """Give a PATH on which only these tools are found; they do nothing and succeed."""

    def path(*names: str) -> str:
        place = tmp_path / "tools"
        place.mkdir()
        for name in names:
            (place / name).write_text("#!/bin/sh\n")
            (place / name).chmod(0o755)
        # Other users must be able to look into it.
        open_to_others(place)
        return str(place)

    return path


def _findings(home):
    return {finding.name: finding for finding in examine(home)}


def test_a_good_machine_has_nothing_wrong(tmp_path, kubernetes_binaries, monkeypatch):
    """The tests run on one."""
    monkeypatch.setenv("NOVACRON_KUBERNETES_BIN", str(kubernetes_binaries))
    findings = _findings(Home(tmp_path / "state", tmp_path / "cache"))
    assert all(finding.fine for finding in findings.values()), findings
    assert {"system", "Python", "memory", "Kubernetes", "disk", "pods"} <= findings.keys()


def test_looking_changes_nothing(tmp_path):
    """A check that makes directories is no check."""
    list(examine(Home(tmp_path / "state", tmp_path / "cache")))
    assert list(tmp_path.iterdir()) == []


def test_a_state_directory_that_is_a_file_is_found(tmp_path):
    """The remedy names the variable."""
    (tmp_path / "state").write_text("")
    finding = _findings(Home(tmp_path / "state", tmp_path / "cache"))[
        f"directory {tmp_path / 'state'}"
    ]
    assert not finding.fine
    assert "NOVACRON_HOME" in finding.remedy


def test_wrong_ready_made_programs_are_found(tmp_path, monkeypatch):
    """A variable set long ago points to what is no longer there."""
    monkeypatch.setenv("NOVACRON_KUBERNETES_BIN", str(tmp_path / "gone"))
    finding = _findings(Home(tmp_path / "state", tmp_path / "cache"))["Kubernetes"]
    assert not finding.fine
    assert "NOVACRON_KUBERNETES_BIN" in finding.remedy


def test_before_the_first_build_its_needs_are_looked_at(tmp_path, monkeypatch):
    """It takes minutes, so what would stop it should be known beforehand."""
    monkeypatch.delenv("NOVACRON_KUBERNETES_BIN", raising=False)
    findings = _findings(Home(tmp_path / "state", tmp_path / "cache"))
    assert "builds it once" in findings["Kubernetes"].state
    assert "Go" in findings


def test_without_root_the_exact_command_is_told(tools):
    """Somebody else may have to type it."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_ROOT],
        capture_output=True,
        text=True,
        check=False,
        # A machine without sudo and with apt-get: neither may decide how this test ends.
        env={**os.environ, "PATH": tools("apt-get")},
    )
    assert done.returncode == 1
    assert "no-such-package (the test wants it)" in done.stderr
    command = "sudo apt-get install -y --no-install-recommends no-such-package"
    assert f"run `{command}` and try again" in done.stderr


@pytest.mark.parametrize("installer", ["apt-get", "dnf", "apk"])
def test_the_systems_own_installer_is_used(tools, monkeypatch, installer):
    """Each package is named before it is installed."""
    monkeypatch.setenv("PATH", tools(installer, "sudo"))
    told: list[str] = []
    install([Package("thing", "reason", lambda: False)], told.append)
    assert told == ["installing thing (reason)"]


def test_an_unknown_system_is_told_what_to_get(tools, monkeypatch):
    """We cannot know the command there, but the names help."""
    monkeypatch.setenv("PATH", tools())
    with pytest.raises(WorkplaceError, match=r"missing system packages: thing \(reason\)"):
        install([Package("thing", "reason", lambda: False)], print)
