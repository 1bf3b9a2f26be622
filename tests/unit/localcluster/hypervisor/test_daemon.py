"""A private libvirt daemon starts, survives and leaves nothing behind; real libvirt, real QEMU."""

import os
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from local_cluster import processes_under
from novacron.localcluster.errors import LocalClusterError, ProcessFailed
from novacron.localcluster.hypervisor import Hypervisor
from novacron.localcluster.hypervisor.account import GUEST_USER
from novacron.localcluster.hypervisor.places import Places
from novacron.localcluster.hypervisor.remains import processes_of
from novacron.localcluster.identity import Identity

ROOT = os.geteuid() == 0
DEADLINE_SECONDS = 30.0
# A guest with no disk: its firmware finds nothing to boot and hears no one.
DEAF = """
<domain type='qemu'><name>{name}</name><memory unit='MiB'>32</memory>
<os><type arch='x86_64' machine='q35'>hvm</type></os></domain>
"""
NETWORK = """
<network><name>{name}</name><bridge name='{name}br0'/>
<ip address='10.77.0.1' netmask='255.255.255.0'/></network>
"""

Start = Callable[[], Hypervisor]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start daemons, each in a network of its own; none is left when the test ends."""
    started: list[Hypervisor] = []

    def begin() -> Hypervisor:
        namespace = f"nova-test-{uuid.uuid4().hex[:6]}" if ROOT else None
        started.append(Hypervisor(tmp_path / f"host-{len(started)}", namespace=namespace))
        started[-1].start()
        return started[-1]

    yield begin
    for hypervisor in started:
        hypervisor.stop(timedelta(0))
        assert processes_under(hypervisor.directory) == []
        assert processes_of(Places(hypervisor.directory)) == []
        assert not (hypervisor.directory / "run").exists()
        assert not Places(hypervisor.directory).alias.is_symlink()
        assert not Path("/run/netns", hypervisor.namespace or "none").exists()


def _virsh(hypervisor: Hypervisor, *arguments: str, xml: str = "") -> str:
    given = ["/dev/stdin"] if xml else []
    command = ["virsh", "--quiet", "--connect", hypervisor.uri, *arguments, *given]
    done = subprocess.run(command, input=xml, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def _guest(hypervisor: Hypervisor, name: str = "deaf") -> Identity:
    """Start a guest and return its process."""
    before = set(processes_of(Places(hypervisor.directory)))
    _virsh(hypervisor, "create", xml=DEAF.format(name=name))
    return next(
        each
        for each in set(processes_of(Places(hypervisor.directory))) - before
        if "qemu" in Path(f"/proc/{each.pid}/comm").read_text()
    )


def _until(claim: Callable[[], bool]) -> None:
    end = time.monotonic() + DEADLINE_SECONDS
    while not claim():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_second_start_changes_nothing(start):
    """It is what every `up` does."""
    hypervisor = start()
    before = hypervisor.running()
    assert before is not None
    assert not hypervisor.start()
    assert hypervisor.running() == before


def test_guests_that_hear_nothing_are_ended_after_their_grace(start):
    """Nobody waits for ever for a guest without a system."""
    hypervisor = start()
    guest = _guest(hypervisor)
    began = time.monotonic()
    assert hypervisor.stop(timedelta(seconds=1))
    assert time.monotonic() - began > 1
    assert not guest.alive()
    assert not hypervisor.stop()


def test_guests_outlive_a_daemon_that_crashed(start):
    """A daemon that is killed must not cost anybody a guest."""
    hypervisor = start()
    guest = _guest(hypervisor)
    hypervisor.kill()
    assert not hypervisor.ready()
    assert guest.alive()
    assert hypervisor.start()
    assert _virsh(hypervisor, "list", "--name") == "deaf"


def test_a_daemon_that_is_killed_is_started_again(start):
    """Without anybody typing anything."""
    hypervisor = start()
    guest = _guest(hypervisor)
    keeper = hypervisor.running()
    assert keeper is not None
    daemon = int(Path(f"/proc/{keeper.pid}/task/{keeper.pid}/children").read_text().split()[0])
    os.kill(daemon, signal.SIGKILL)
    _until(lambda: not Path(f"/proc/{daemon}").exists())
    _until(hypervisor.ready)
    assert hypervisor.running() == keeper
    assert guest.alive()
    assert _virsh(hypervisor, "list", "--name") == "deaf"


def test_a_stop_after_a_crash_ends_the_guests_too(start):
    """Otherwise they would run until the machine is switched off."""
    hypervisor = start()
    guest = _guest(hypervisor)
    hypervisor.kill()
    assert hypervisor.stop(timedelta(0))
    assert not guest.alive()


def test_a_stop_without_libvirt_ends_the_guests_too(start, monkeypatch):
    """Somebody removed the package, or it does not start any more: the records are enough."""
    hypervisor = start()
    guest = _guest(hypervisor)
    hypervisor.kill()
    monkeypatch.setattr(Hypervisor, "start", _broken)
    assert hypervisor.stop()
    assert not guest.alive()


def _broken(_: Hypervisor) -> bool:
    raise LocalClusterError("libvirtd is not installed")


def test_what_ran_before_the_last_boot_is_forgotten(start):
    """libvirt keeps what runs in a place that a boot empties, and believes what it finds there."""
    hypervisor = start()
    _virsh(hypervisor, "define", xml=DEAF.format(name="defined"))
    hypervisor.stop()
    (hypervisor.directory / "boot").write_text("another one")
    left = hypervisor.directory / "run/libvirt/left"
    left.parent.mkdir(parents=True)
    left.touch()
    assert hypervisor.start()
    assert not left.exists()
    assert _virsh(hypervisor, "list", "--all", "--name") == "defined"


def test_daemons_side_by_side_do_not_see_each_other(start):
    """Each is a host of its own; the user's own libvirt is one more."""
    first, second = start(), start()
    _guest(first)
    assert _virsh(second, "list", "--all", "--name") == ""
    assert _uuid(first) != _uuid(second)
    if ROOT:
        assert first.network != second.network


def _uuid(hypervisor: Hypervisor) -> str:
    capabilities = _virsh(hypervisor, "capabilities")
    return capabilities.partition("<uuid>")[2].partition("</uuid>")[0]


def test_what_qemu_can_do_is_asked_once(start):
    """Where guests may not use KVM but root may, libvirt would ask again at every call."""
    hypervisor = start()
    answers = [*(hypervisor.directory / "cache/libvirt/qemu/capabilities").glob("*.xml")]
    before = [path.stat().st_mtime_ns for path in answers]
    assert before
    assert hypervisor.ready()
    assert [path.stat().st_mtime_ns for path in answers] == before


@pytest.mark.skipif(not ROOT, reason="only root's daemon may run guests as somebody else")
def test_guests_do_not_run_as_root(start):
    """Whoever breaks out of a guest should find nothing."""
    guest = _guest(start())
    assert Path(f"/proc/{guest.pid}").stat().st_uid == GUEST_USER


@pytest.mark.skipif(not ROOT, reason="only root makes bridges")
def test_networks_go_with_the_daemon_and_come_back_with_it(start):
    """No bridge may stay, and the next start finds the networks as they were."""
    hypervisor = start()
    _virsh(hypervisor, "net-define", xml=NETWORK.format(name="nova-t"))
    _virsh(hypervisor, "net-autostart", "nova-t")
    _virsh(hypervisor, "net-start", "nova-t")
    assert "nova-tbr0" in _links(hypervisor)
    # In the machine's own network nothing is to be seen of it, nor in its mounts.
    assert not Path("/sys/class/net/nova-tbr0").exists()
    assert str(hypervisor.directory) not in Path("/proc/self/mounts").read_text()
    hypervisor.stop()
    hypervisor.start()
    assert "nova-tbr0" in _links(hypervisor)


def _links(hypervisor: Hypervisor) -> str:
    command = ["ip", "-netns", hypervisor.namespace or "", "-brief", "link"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_daemon_that_does_not_stay_is_given_up(tmp_path):
    """Here because a file is in its way; nothing is left to try again for ever."""
    hypervisor = Hypervisor(tmp_path / "host")
    in_its_way = tmp_path / "host/etc/libvirt/storage"
    in_its_way.parent.mkdir(parents=True)
    in_its_way.touch()
    with pytest.raises(ProcessFailed, match="libvirtd does not stay"):
        hypervisor.start()
    assert hypervisor.running() is None
    assert processes_under(tmp_path) == []


def test_a_path_too_long_for_sockets_is_one_sentence(tmp_path):
    """libvirt would only say that it cannot listen."""
    hypervisor = Hypervisor(tmp_path / ("long" * 25))
    with pytest.raises(LocalClusterError, match="characters too long for a socket"):
        hypervisor.start()


def test_stopping_what_never_ran_does_nothing(tmp_path):
    """`down` asks, whatever the cluster was set up with."""
    assert not Hypervisor(tmp_path / "never").stop()
