"""Several hosts on one machine exchange real guests, fail alone and leave nothing behind."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import libvirt
import pytest

from fleet import own_fleet, power_off, shared_fleet
from guest_images import built_in
from local_cluster import processes_under
from moving_guest import connected, moves_while_it_counts
from novacron.localcluster.errors import LocalClusterError
from novacron.localcluster.hypervisor import Fleet
from novacron.localcluster.hypervisor.fleet import SHARED_POOL, require_room
from novacron.localcluster.hypervisor.places import Places
from novacron.localcluster.hypervisor.remains import processes_of
from ordinary_user import ordinary_user
from rights import ROOT

TESTS = Path(__file__).parents[3]
ONLY_ROOT = pytest.mark.skipif(not ROOT, reason="only root makes networks")
DEAF = """
<domain type='qemu'><name>deaf</name><memory unit='MiB'>32</memory>
<os><type arch='x86_64' machine='q35'>hvm</type></os></domain>
"""


def traces(fleet: Fleet) -> list[object]:
    """Return whatever there is of a fleet outside of its directory."""
    links = _links(fleet)
    spaces = [Path("/run/netns", host.namespace or "none") for host in fleet.hosts]
    rules = subprocess.run(["iptables-save"], capture_output=True, text=True, check=False).stdout
    return [
        *links,
        *(space for space in spaces if space.exists()),
        *(line for line in rules.splitlines() if _mark(fleet) in line),
        *processes_under(fleet.directory),
        *(each for host in fleet.hosts for each in processes_of(Places(host.directory))),
    ]


def _links(fleet: Fleet) -> list[str]:
    """Return the names of all links of this machine that belong to a fleet."""
    found = (link.name for link in Path("/sys/class/net").iterdir())
    return [name for name in found if _mark(fleet) in name]


def _mark(fleet: Fleet) -> str:
    return (fleet.hosts[0].namespace or "nova-none-1").split("-")[1]


@pytest.fixture
def fragile() -> Iterator[Fleet]:
    """Two hosts to break; nothing of them may be left, whatever became of them."""
    with own_fleet() as fleet:
        yield fleet
        fleet.stop()
        assert traces(fleet) == []


@pytest.mark.full
def test_a_guest_moves_while_it_counts() -> None:
    """It goes on counting: it was not started anew, and its network came along."""
    image = built_in("tiny")
    assert image is not None
    moves_while_it_counts(shared_fleet(), image)


@pytest.mark.full
def test_a_guest_of_an_ordinary_user_moves_too() -> None:
    """Two daemons in session mode, on the machine's loopback."""
    with ordinary_user() as user:
        program, image = TESTS / "moving_guest.py", next((user.home / "cache").iterdir())
        done = user.run(str(program), str(user.home / "fleet"), str(image), path=TESTS)
        assert done.returncode == 0, done.stdout + done.stderr


@ONLY_ROOT
def test_a_host_that_loses_power_is_gone_alone(fragile: Fleet) -> None:
    """Its guests and its network end with it; the others stay, and it can come back."""
    first, second = fragile.hosts
    with connected(second) as (there,):
        there.createXML(DEAF)
    power_off(second)
    assert processes_of(Places(second.directory)) == []
    assert not Path("/run/netns", second.namespace or "").exists()
    assert first.ready()
    assert not second.ready()
    assert fragile.start()
    with connected(second) as (there,):
        assert there.listAllDomains() == []
        assert SHARED_POOL in [pool.name() for pool in there.listAllStoragePools()]
    assert not fragile.start()


@ONLY_ROOT
def test_a_connection_that_was_cut_amid_a_word_does_not_keep_a_host_from_coming_back(
    fragile: Fleet,
) -> None:
    """What was to be said keeps a network alive that has no name any more, for minutes."""
    second = fragile.hosts[1]
    speaks = [sys.executable, "-c", SPEAKER, fragile.segment.address(2)]
    speaker = subprocess.Popen(
        ["ip", "netns", "exec", second.namespace or "", *speaks], stdout=subprocess.PIPE, text=True
    )
    assert speaker.stdout is not None
    with socket.create_connection((fragile.segment.address(2), int(speaker.stdout.readline()))):
        assert speaker.stdout.readline() == "more than is taken\n"
        speaker.kill()
        speaker.communicate()
        power_off(second)
        assert not [link for link in _links(fragile) if link.endswith("-2")], "nobody answers there"
        assert fragile.start()
    assert _reached(fragile)


SPEAKER = """
import socket, sys
listening = socket.create_server((sys.argv[1], 0))
print(listening.getsockname()[1], flush=True)
caller, _ = listening.accept()
caller.settimeout(0.5)
try:
    while caller.send(bytes(65536)):
        pass
except TimeoutError:
    print("more than is taken", flush=True)
caller.settimeout(None)
caller.recv(1)
"""


@ONLY_ROOT
def test_whatever_is_taken_away_is_there_again_after_the_next_start(fragile: Fleet) -> None:
    """A second up repairs: the bridge, who gives out addresses, a cable, a daemon."""
    bridge = next(link for link in _links(fragile) if link.startswith("nova"))
    subprocess.run(["ip", "link", "delete", bridge], check=True)
    fragile.segment.processes.kill("dnsmasq")
    fragile.hosts[0].kill()
    assert fragile.start()
    with connected(*fragile.hosts):
        assert all(host.ready() for host in fragile.hosts)
    assert _reached(fragile)


def _reached(fleet: Fleet) -> bool:
    """Say whether the second host is reached over the network by whoever has a certificate."""
    pair = fleet.caller()
    here = fleet.directory / "caller"
    here.mkdir(exist_ok=True)
    authority = fleet.authority.pair.certificate
    for name, source in {
        "cacert.pem": authority,
        "clientcert.pem": pair.certificate,
        "clientkey.pem": pair.key,
    }.items():
        (here / name).write_bytes(source.read_bytes())
    libvirt.open(f"{fleet.tls_uri(2)}?pkipath={here}").close()
    return True


def test_a_user_is_told_how_many_hosts_there_can_be() -> None:
    """In one sentence, before anything is made."""
    require_room(2, privileged=False)
    with pytest.raises(LocalClusterError, match="without root there can be 2 hosts and not 3"):
        require_room(3, privileged=False)
