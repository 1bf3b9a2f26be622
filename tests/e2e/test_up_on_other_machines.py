"""`novacron up` where something is missing: no QEMU, no root, nothing but a plain user."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import novacron
from guest_images import built_in
from local_cluster import DEADLINE_SECONDS, NOVACRON, processes_under
from novacron.localcluster.hypervisor.places import Places
from open_directories import open_to_others

NOBODY = 65534
ROOT = os.geteuid() == 0
# Modules are loaded before the rights are given up: an interpreter may lie in root's home.
AS_NOBODY = f"""
import os, novacron.app.entry, novacron.cli.cluster, novacron.cli.display, novacron.cli.up
import novacron.guests.packages, novacron.localcluster.hypervisor.packages, novacron.cli.provider
if os.geteuid() == 0:
    os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
novacron.app.entry.main()
"""

Up = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def bare(tmp_path: Path, kubernetes_binaries: Path) -> Iterator[Up]:
    """Run `up` on a machine that has nothing but these programs, and none of them does anything."""
    tools = tmp_path / "tools"
    tools.mkdir()
    state = tmp_path / "state"
    state.mkdir()
    state.chmod(0o777)
    # Others must be able to look into them.
    open_to_others(tmp_path)

    def up(*python: str, programs: tuple[str, ...] = ()) -> "subprocess.CompletedProcess[str]":
        for name in programs:
            (tools / name).write_text("#!/bin/sh\n")
            (tools / name).chmod(0o755)
        return subprocess.run(
            [*(python or NOVACRON), "up"],
            env={
                **{key: text for key, text in os.environ.items() if key != "KUBECONFIG"},
                "PATH": str(tools),
                "NOVACRON_HOME": str(state / "home"),
                "NOVACRON_KUBERNETES_BIN": str(kubernetes_binaries),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE_SECONDS,
        )

    yield up
    assert processes_under(state) == []


def test_without_qemu_and_a_way_to_get_it_there_is_one_sentence(bare):
    """Each missing package is named, with what it is for."""
    done = bare()
    assert done.returncode == 1
    assert "missing system package: qemu-system-x86 (guests run in it)" in done.stdout
    assert done.stderr.startswith("error: missing system packages: ")
    assert done.stderr.endswith("install them and try again\n")
    assert len(done.stderr.splitlines()) == 1


def test_without_root_the_exact_command_is_told(bare):
    """Somebody else may have to type it."""
    done = bare(sys.executable, "-c", AS_NOBODY, programs=("apt-get",))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "this user may not install them" in done.stderr
    command = done.stderr.partition("run `sudo ")[2].partition("`")[0]
    assert command.startswith("apt-get install -y --no-install-recommends ")
    assert {"qemu-system-x86", "qemu-utils", "libvirt-clients"} <= set(command.split())
    assert "dnsmasq-base" not in command


def _python_of_others() -> str | None:
    """Return a Python that other users may run and that our modules were compiled for."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    ours = Path(sys.executable).resolve()
    if all(directory.stat().st_mode & 0o1 for directory in ours.parents):
        return str(ours)
    return shutil.which(version, path="/usr/local/bin:/usr/bin")


class OrdinaryUser:
    """Somebody with a home directory and no rights."""

    def __init__(self, home: Path, python: str, binaries: Path) -> None:
        self.home = home
        environment = home / "environment"
        subprocess.run([python, "-m", "venv", "--without-pip", environment], check=True)
        self.python = environment / "bin" / "python"
        modules = next((environment / "lib").glob("python*/site-packages"))
        places = (Path(pytest.__file__).parents[1], Path(novacron.__file__).parents[1])
        (modules / "ours.pth").write_text("\n".join(map(str, places)))
        for source in (*binaries.iterdir(), built_in("tiny")):
            _lend(source, home / ("cache" if source.suffix else "kubernetes") / source.name)
        for directory in (home, home / "cache"):
            os.chown(directory, NOBODY, NOBODY)

    def call(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Type a command."""
        return subprocess.run(
            [self.python, "-m", "novacron.app.entry", *arguments],
            env={
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "HOME": str(self.home),
                "NOVACRON_HOME": str(self.home / "state"),
                "NOVACRON_CACHE": str(self.home / "cache"),
                "NOVACRON_KUBERNETES_BIN": str(self.home / "kubernetes"),
                "PYTHONDONTWRITEBYTECODE": "1",
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


@pytest.fixture
def ordinary(kubernetes_binaries: Path) -> Iterator[OrdinaryUser]:
    """An ordinary user who gets what root has in its cache."""
    python = _python_of_others()
    if not ROOT or python is None:
        pytest.skip("either everything runs as an ordinary user already, or no Python is theirs")
    with tempfile.TemporaryDirectory(prefix="nova-user-") as directory:
        user = OrdinaryUser(Path(directory), python, kubernetes_binaries)
        yield user
        user.call("purge", "--yes")
        assert processes_under(user.home) == []


@pytest.mark.full
def test_an_ordinary_user_gets_a_real_guest_too(ordinary):
    """With a daemon and a network of their own, neither of which needs any rights."""
    done = ordinary.call("up")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "hello   Running   local   10.0.2.15" in done.stdout
    assert "novacron-tiny: " in done.stdout.partition("hello's console:")[2]
    stopped = ordinary.call("down")
    assert stopped.stdout.startswith("stopped operator, hypervisor, "), stopped.stderr
    assert processes_under(ordinary.home) == []
    assert not Places(ordinary.home / "state/hypervisor").alias.is_symlink()
