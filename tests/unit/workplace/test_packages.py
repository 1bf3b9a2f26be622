"""Missing system packages are named and installed, or the exact command is told."""

import os
import subprocess
import sys

import pytest

from novacron.workplace.errors import WorkplaceError
from novacron.workplace.packages import Package, install

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
        for directory in (place, *place.parents[:3]):
            directory.chmod(0o755)
        return str(place)

    return path


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
    assert (
        "run `sudo apt-get install -y --no-install-recommends no-such-package` and try again"
        in done.stderr
    )


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


def test_lists_that_are_old_or_missing_are_read_anew(tmp_path, monkeypatch):
    """A fresh container has none, and a month later the archive has other versions."""
    script = f"""#!/bin/sh
echo "$1" >>{tmp_path}/asked
[ "$1" = update ] && exec /usr/bin/touch {tmp_path}/lists
[ -e {tmp_path}/lists ] || {{ echo 'E: Unable to locate package thing' >&2; exit 100; }}
"""
    for name in ("apt-get", "sudo"):
        (tmp_path / name).write_text(
            script if name == "apt-get" else '#!/bin/sh\n[ "$2" = true ] || { shift; exec "$@"; }\n'
        )
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    install([Package("thing", "reason", lambda: False)], print)
    assert (tmp_path / "asked").read_text().split() == ["install", "update", "install"]


def test_what_cannot_be_installed_is_one_sentence(tmp_path, monkeypatch):
    """The installer's last line usually says why."""
    for name in ("apt-get", "sudo"):
        (tmp_path / name).write_text(
            "#!/bin/sh\n[ \"$2\" = true ] || { echo 'E: no such thing' >&2; exit 100; }\n"
        )
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        WorkplaceError, match=r"`apt-get install .* thing` failed: E: no such thing"
    ):
        install([Package("thing", "reason", lambda: False)], print)
