"""`novacron up` where something is missing: no QEMU, no root, nothing but a plain user."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from local_cluster import DEADLINE_SECONDS, NOVACRON, processes_under
from novacron.localcluster.hypervisor.places import Places
from open_directories import open_to_others
from ordinary_user import NOBODY, OrdinaryUser, ordinary_user

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


@pytest.fixture
def ordinary(kubernetes_binaries: Path) -> Iterator[OrdinaryUser]:
    """An ordinary user who gets what root has in its cache."""
    with ordinary_user(kubernetes_binaries) as user:
        yield user
        user.call("purge", "--yes")


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


@pytest.mark.full
def test_an_ordinary_user_has_two_hosts_and_not_three(ordinary):
    """Three would need networks of their own, which only root may make."""
    refused = ordinary.call("up", "--hosts", "3")
    assert refused.returncode == 1
    assert refused.stderr.startswith("error: without root there can be 2 hosts and not 3"), refused
    done = ordinary.call("up", "--hosts", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    listed = ordinary.call("host", "list").stdout
    assert re.search(r"local +libvirt +Ready", listed), listed
    assert re.search(r"local-2 +libvirt +Ready", listed), listed
    start = _node_of_hello(ordinary)
    other = {"local": "local-2", "local-2": "local"}[start]
    moved = ordinary.call("vm", "migrate", "hello", "--wait")
    assert moved.returncode == 0, moved.stderr
    assert f"hello moved to {other}" in moved.stdout
    assert _node_of_hello(ordinary) == other
    stopped = ordinary.call("down")
    assert stopped.stdout.startswith("stopped operator, hypervisor, "), stopped.stderr
    assert processes_under(ordinary.home) == []


def _node_of_hello(user: OrdinaryUser) -> str:
    """Return where the first machine is."""
    said: dict[str, dict[str, str]] = json.loads(
        user.call("vm", "get", "hello", "-o", "json").stdout
    )
    return said["status"]["nodeName"]
