"""Plain `novacron up` boots a real guest, keeps it over every crash, and leaves nothing behind."""

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from local_cluster import LocalCluster, processes_under
from novacron.localcluster.hypervisor import Hypervisor
from novacron.localcluster.hypervisor.places import Places
from novacron.localcluster.hypervisor.remains import processes_of
from novacron.localcluster.identity import Identity
from novacron.workplace.home import Home
from ping import answers

ROOT = os.geteuid() == 0
DEADLINE_SECONDS = 120.0
BOOTS = re.compile(r"novacron-tiny: ready hostname=hello ip=\S+ boot=(\d+)")


@dataclass(frozen=True)
class Welcomed:
    """A cluster, and what the first `up` said."""

    local: LocalCluster
    said: str


@pytest.fixture(scope="module")
def welcomed(
    tmp_path_factory: pytest.TempPathFactory, kubernetes_binaries: Path
) -> Iterator[Welcomed]:
    """One boot for all tests of this module; nothing is left in the end."""
    assert kubernetes_binaries
    local = LocalCluster(tmp_path_factory.mktemp("real") / "home", Home.default().cache)
    try:
        yield Welcomed(local, local.ok("up"))
    finally:
        purged = local.call("purge", "--yes")
    assert purged.returncode == 0, purged.stderr
    _nothing_is_left(local)
    assert not local.home.exists()


@pytest.fixture
def real(welcomed: Welcomed) -> LocalCluster:
    """The cluster, up again if a test took it down."""
    if welcomed.local.call("status").returncode:
        welcomed.local.ok("up")
    _until(lambda: _boots(welcomed.local) != [], "the guest says that it is ready")
    return welcomed.local


def _nothing_is_left(local: LocalCluster) -> None:
    hypervisor = Hypervisor(local.home / "hypervisor")
    places = Places(hypervisor.directory)
    assert processes_under(local.home) == []
    assert processes_of(places) == []
    assert not Path("/sys/class/net", f"{hypervisor.network}br0").exists()
    assert not places.alias.is_symlink()
    for mounts in Path("/proc").glob("[0-9]*/mountinfo"):
        try:
            assert str(local.home) not in mounts.read_text(), mounts
        except OSError:
            continue


def _address(local: LocalCluster) -> str:
    status = local.json("vm", "get", "hello")["status"]
    assert status["phase"] == "Running"
    return str(status["ipAddresses"][0])


def _guest(local: LocalCluster) -> Identity | None:
    """Return the process of the one guest there is, if it runs."""
    for each in processes_of(Places(local.home / "hypervisor")):
        command = Path(f"/proc/{each.pid}/cmdline")
        if command.exists() and b"guest=default.hello" in command.read_bytes():
            return each
    return None


def _boots(local: LocalCluster) -> list[int]:
    """Return the number of each boot of this disk that the guest told of on its console."""
    console = next((local.home / "hypervisor").glob("**/*-console.log"))
    return [int(count) for count in BOOTS.findall(console.read_text(errors="replace"))]


def _until(claim: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + DEADLINE_SECONDS
    while not claim():
        assert time.monotonic() < end, what
        time.sleep(0.2)


def test_the_first_machine_is_a_real_guest(real, welcomed):
    """One command from nothing to a guest with an address."""
    said, address = welcomed.said, _address(real)
    assert f"hello   Running   local   {address}" in said
    assert "novacron-tiny: ready hostname=hello" in said.partition("hello's console:")[2]
    assert real.pids().keys() >= {"etcd", "hypervisor", "operator"}
    assert real.json("host", "get", "local")["status"]["accelerator"] in ("KVM", "TCG")
    if ROOT:
        assert answers(address, seconds=10)
    else:
        assert address == "10.0.2.15"


@pytest.mark.full
def test_a_second_up_changes_nothing(real):
    """It is what people type when they are not sure."""
    pids, versions, guest = real.pids(), real.versions(), _guest(real)
    said = real.ok("up")
    assert "already running" in said
    assert "hello's console:" in said
    assert real.pids() == pids
    assert real.versions() == versions
    assert _guest(real) == guest


@pytest.mark.full
def test_a_guest_outlives_hypervisor_and_operator(real):
    """Both are killed with those that watch over them; the guest does not notice."""
    guest, pids, boots = _guest(real), real.pids(), _boots(real)
    assert guest is not None
    for name in ("hypervisor", "operator"):
        os.kill(pids[name], signal.SIGKILL)
    assert "The cluster is up" in real.ok("up")
    assert guest.alive()
    assert _guest(real) == guest
    assert real.call("status").returncode == 0
    assert _boots(real) == boots


@pytest.mark.full
def test_a_guest_that_is_killed_is_started_again(real):
    """By the operator, without anybody typing anything."""
    guest, boots = _guest(real), _boots(real)
    assert guest is not None
    guest.signal(signal.SIGKILL)
    _until(lambda: _boots(real) == [*boots, boots[-1] + 1], "the guest boots again")


@pytest.mark.full
def test_down_leaves_nothing_and_the_next_up_boots_the_same_disk(real):
    """Stopped is stopped, and the data stays."""
    address, boots = _address(real), _boots(real)
    said = real.ok("down")
    assert said.startswith("stopped operator, hypervisor, ")
    _nothing_is_left(real)
    assert real.ok("down") == "nothing was running\n"
    real.ok("up")
    _until(lambda: _boots(real) == [*boots, boots[-1] + 1], "the guest boots again")
    assert _address(real) == address


def test_down_after_a_crash_leaves_nothing_either(real):
    """Everything killed but the guest, which nobody looks after any more."""
    for pid in real.pids().values():
        os.kill(pid, signal.SIGKILL)
    guest = _guest(real)
    assert guest is not None
    assert "hypervisor" in real.ok("down")
    _nothing_is_left(real)
