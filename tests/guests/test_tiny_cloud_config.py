"""What the built-in guest does when it is told everything: one machine for all tests here.

The tests may run in any order: whoever finds the machine switched off switches it on again.
"""

import base64
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from guest import Guest, overlay, virtio_disk
from novacron.guests.nocloud import nocloud_image

MAC = "52:54:00:12:34:56"
IDLE = "52:54:00:00:00:02"
META_DATA = "instance-id: i-1\nlocal-hostname: told-by-meta-data\npublic-keys: {a: b}\n"
NETWORK_CONFIG = f"""
network:
  version: 2
  ethernets:
    other:
      match: {{macaddress: "52:54:00:99:99:99"}}
      addresses: [10.9.9.9/24]
    primary:
      match:
        macaddress: "{MAC.upper()}"
      mtu: 1400
      addresses: [10.0.2.77/24, "fd00::77/64"]
      gateway4: 10.0.2.2
      gateway6: "fd00::1"
      routes:
        - {{to: 10.50.0.0/16, via: 10.0.2.3, metric: 7}}
      nameservers: {{addresses: [10.0.2.3], search: [example.test]}}
      dhcp6: false
      wakeonlan: true
"""
USER_DATA = f"""#cloud-config
hostname: web-1
packages: [nginx]
users:
  - name: ada
ssh_authorized_keys: [ssh-ed25519 AAAA ada@example]
write_files:
  - path: /srv/deep/text
    content: |
      it's "quoted" \\n $HOME
      second line
    permissions: '0640'
  - path: /srv/binary
    encoding: b64
    content: {base64.b64encode(bytes(range(256))).decode()}
  - path: /srv/tagged
    content: !!binary {base64.b64encode(b"tagged").decode()}
  - path: /srv/deep/text
    content: "appended\\n"
    append: true
    permissions: 0o640
    source: {{uri: "file:///x"}}
bootcmd:
  - echo boot >>/srv/boots
runcmd:
  - cd /srv
  - [sh, -c, 'echo "in $PWD: $1" >from-list', arg0, "it's one argument"]
  - |
    for n in 1 2; do
      echo "$n" >>run
    done
  - echo secret-free; exit 3
"""


@pytest.fixture(scope="module")
def machine(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    directory = tmp_path_factory.mktemp("tiny")
    seed = directory / "seed.iso"
    seed.write_bytes(bytes(nocloud_image(META_DATA, USER_DATA, NETWORK_CONFIG)))
    disk = overlay(tiny, directory / "root.qcow2", 300)
    guest = Guest(
        directory,
        *virtio_disk(disk, "qcow2"),
        *virtio_disk(seed, read_only=True),
        *("-netdev", "user,id=lan", "-device", f"virtio-net-pci,netdev=lan,mac={MAC}"),
        *("-netdev", "user,id=idle", "-device", f"virtio-net-pci,netdev=idle,mac={IDLE}"),
        *("-smp", "1,maxcpus=2"),
        # A restart inside of QEMU takes seconds longer than a new QEMU; the guest does the same.
        "-no-reboot",
        *("-device", "pcie-root-port,id=spare,slot=1"),
        memory="192,slots=1,maxmem=512M",
    )
    try:
        yield guest.start()
    finally:
        guest.kill()


@pytest.fixture(scope="module")
def boot(machine: Guest) -> str:
    """What the console said until the guest was ready, the ready line included."""
    found = machine.until(r"[\s\S]*?novacron-tiny: ready .*\n")
    machine.until("tick 1\n")
    machine.type("touch /run/tiny/quiet")
    return found[0]


@pytest.fixture
def guest(machine: Guest, boot: str) -> Guest:
    """The machine, running and quiet."""
    assert boot
    if machine.gone(0):
        machine.start().ready()
    return machine


def test_it_says_that_it_is_ready_and_who_it_is(boot):
    """The name of cloud-config is stronger than that of meta-data, as cloud-init has it."""
    assert boot.endswith("novacron-tiny: ready hostname=web-1 ip=10.0.2.77 boot=1\n")


def test_it_names_what_it_ignores_and_no_more(boot):
    """Whoever wrote it must learn that nobody acts upon it."""
    assert "novacron-tiny: meta-data: ignored: public-keys\n" in boot
    assert "novacron-tiny: user-data: ignored: packages users write_files/3/source/uri\n" in boot
    assert "novacron-tiny: network-config: ignored: ethernets/primary/wakeonlan\n" in boot


def test_a_command_that_fails_is_said(boot):
    """A code is said; the command is not, for it may hold a secret."""
    assert "novacron-tiny: user-data: runcmd ended with code 3\n" in boot


def test_files_are_written_as_told(guest):
    """Quotes, backslashes, dollars and bytes that are no text arrive as they were."""
    text = guest.shell("cat /srv/deep/text").splitlines()
    assert text == ['it\'s "quoted" \\n $HOME', "second line", "appended"]
    assert guest.shell("stat -c %a:%U /srv/deep/text") == "640:root"
    assert guest.shell("cat /srv/tagged") == "tagged"
    printed = guest.shell("base64 /srv/binary").replace("\n", "")
    assert base64.b64decode(printed) == bytes(range(256))


def test_commands_are_run_as_told(guest):
    """A list is a program with its arguments, and directories last from command to command."""
    assert guest.shell("cat /srv/from-list") == "in /srv: it's one argument"
    assert guest.shell("cat /srv/run").split() == ["1", "2"]


def test_keys_are_kept_for_whatever_reads_them(guest):
    """The guest has no secure shell; a program that is put into it may."""
    assert "ada@example" in guest.shell("cat /root/.ssh/authorized_keys")
    assert guest.shell("stat -c %a /root/.ssh") == "700"


def test_the_network_is_as_told(guest):
    """The right one of two ethernets is chosen by its MAC, in whatever case it is written."""
    addresses = guest.shell("ip -o addr show dev eth0; cat /sys/class/net/eth0/mtu")
    assert "10.0.2.77/24" in addresses
    assert "fd00::77/64" in addresses
    assert addresses.endswith("1400")
    routes = guest.shell("ip route")
    assert "default via 10.0.2.2 dev eth0" in routes
    assert "10.50.0.0/16 via 10.0.2.3 dev eth0" in routes
    assert "default via fd00::1 dev eth0" in guest.shell("ip -6 route")
    assert guest.shell("cat /etc/resolv.conf") == "nameserver 10.0.2.3\nsearch example.test"
    assert "0% packet loss" in guest.shell("ping -c 1 -W 5 10.0.2.2")


def test_the_root_is_as_large_as_its_disk(guest):
    """The image has 64 MiB; a machine's disk has what its owner asked for."""
    assert int(guest.shell("df -m / | awk 'END {print $2}'")) > 220


@pytest.mark.full
def test_it_restarts_with_its_disk_and_does_nothing_twice(guest):
    """What is done once for an instance is not done again; bootcmd is done at every boot."""
    before = int(guest.shell("cat /var/lib/tiny/boots"))
    guest.shell("echo mine >/srv/kept; sync")
    guest.type("reboot")
    assert guest.gone(60), guest.heard
    assert guest.start().ready()["boot"] == str(before + 1)
    assert guest.shell("cat /srv/kept") == "mine"
    assert guest.shell("cat /srv/boots").split() == ["boot"] * (before + 1)
    assert guest.shell("cat /srv/run").split() == ["1", "2"]


def test_a_disk_that_grows_under_it_is_used_at_once(guest):
    """No restart: the event of the kernel is enough."""
    guest.monitor("block_resize", device="disk-root", size=500 * 2**20)
    guest.until(r"novacron-tiny: root is \d+ MiB\n", 30)
    assert int(guest.shell("df -m / | awk 'END {print $2}'")) > 410


def test_processors_and_memory_that_are_plugged_in_are_used(guest):
    """The kernel leaves that to somebody, and here it is the guest."""
    (slot,) = (cpu for cpu in guest.monitor("query-hotpluggable-cpus") if "qom-path" not in cpu)
    guest.monitor("device_add", driver=slot["type"], id="cpu1", **slot["props"])
    guest.eventually("nproc", "2")
    before = int(guest.shell("awk '/MemTotal/ {print $2}' /proc/meminfo"))
    guest.monitor("object-add", **{"qom-type": "memory-backend-ram", "id": "m", "size": 2**27})
    guest.monitor("device_add", driver="pc-dimm", id="dimm", memdev="m")
    grown = f"awk '/MemTotal/ {{print ($2 > {before + 2**16})}}' /proc/meminfo"
    guest.eventually(grown, "1")


def test_a_nic_that_nothing_is_said_about_stays_down_and_is_named(guest, boot):
    """That is what network-config means; silence would look like a broken network."""
    assert f"nothing matches eth1 ({IDLE}); it stays down\n" in boot
    guest.eventually("cat /sys/class/net/eth1/operstate", "down")


def test_a_nic_that_comes_later_asks_for_an_address(guest):
    """Whoever wrote network-config could not know of it, and plugged it in to be used."""
    guest.monitor("netdev_add", type="user", id="late")
    guest.monitor(
        "device_add", driver="virtio-net-pci", id="nic1", netdev="late", bus="spare",
        mac="52:54:00:00:00:01",
    )  # fmt: skip
    guest.until(r"nothing matches eth2 \(52:54:00:00:00:01\), which came later; using DHCP\n", 30)
    guest.until(r"eth2 has 10\.0\.2\.15/24\n", 30)


def test_the_agent_answers(guest):
    """It is Debian's own, so what works here works in other guests."""
    assert guest.agent("guest-ping") == {}
    nics = {nic["name"]: nic for nic in guest.agent("guest-network-get-interfaces")}
    assert nics["eth0"]["hardware-address"] == MAC
    assert "10.0.2.77" in [each["ip-address"] for each in nics["eth0"]["ip-addresses"]]
    run = guest.agent(
        "guest-exec", path="/bin/hostname", arg=[], **{"capture-output": True}
    )  # fmt: skip
    deadline = time.monotonic() + 20
    while not (status := guest.agent("guest-exec-status", pid=run["pid"]))["exited"]:
        assert time.monotonic() < deadline
    assert base64.b64decode(status["out-data"]) == b"web-1\n"


def test_its_file_system_can_be_frozen_and_thawed(guest):
    """Snapshots that are to be whole need it."""
    assert guest.agent("guest-fsfreeze-freeze") == 1
    assert guest.agent("guest-fsfreeze-status") == "frozen"
    assert guest.agent("guest-fsfreeze-thaw") == 1
    assert guest.shell("touch /srv/thawed && echo yes") == "yes"


def test_the_power_button_ends_it_cleanly(guest):
    """Within seconds, and by way of its init."""
    guest.monitor("system_powerdown")
    assert guest.gone(30), guest.heard
    guest.until("The system is going down", 1)
