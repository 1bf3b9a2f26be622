"""Networks by name on a real host with a bridge and a switch, hooks, and long instructions."""

import hashlib
import re
import subprocess
import tempfile
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import libvirt
import pytest
import yaml

from api import Api
from e2e.conftest import Stage
from e2e.libvirt.conftest import ImageServer, LibvirtStage
from e2e.libvirt.test_real_machine import qemu_pid
from inside_guest import inside
from libvirt_daemon import LibvirtDaemon
from machines import Object, condition
from open_vswitch import OpenVswitch, open_vswitch
from operators import RunningOperator, eventually

MAP = {
    "management": {"type": "ovs", "bridge": "br-mgmt"},
    "tagged": {"type": "ovs", "bridge": "br-mgmt", "vlan": 42},
    "lan": {"type": "bridge", "bridge": "br-lan"},
}
EXAMPLES = Path(__file__).parents[3] / "examples"
MACHINE = yaml.safe_load((EXAMPLES / "20-networks.yaml").read_text())
NETWORKS = MACHINE["spec"]["template"]["spec"]["networks"]
LONG = "".join(f"line {number} of something long\n" for number in range(1800))
TOLD = yaml.safe_load((EXAMPLES / "24-cloud-init.yaml").read_text())
USER_DATA: str = TOLD["spec"]["template"]["spec"]["userData"]
(KEY,) = yaml.safe_load(USER_DATA)["ssh_authorized_keys"]


def instructions() -> str:
    """Return the example's user data and a file more: 60 KiB, three times what some clouds take."""
    content = "".join(f"      {line}\n" for line in LONG.splitlines())
    file = f"  - path: /srv/long\n    content: |\n{content}"
    return USER_DATA.replace("write_files:\n", f"write_files:\n{file}")


def counting(what: str) -> dict[str, object]:
    """Return a hook that leaves a line on the guest's disk."""
    command = ["/bin/sh", "-c", f"echo {what} >>/root/hooks; sync"]
    return {"exec": {"command": command, "timeoutSeconds": 30}}


def example(real: LibvirtStage) -> Object:
    """Return the example as it is printed, on this host, with hooks and instructions beside."""
    body: Object = deepcopy(MACHINE)
    body["metadata"]["namespace"] = real.scene.namespace
    body["spec"]["template"]["spec"] |= {
        "nodeSelector": {"test/host": real.host},
        "userData": instructions(),
        "lifecycle": {"preStart": counting("start"), "preStop": counting("stop")},
    }
    return body


def reaches(domain: libvirt.virDomain, address: str) -> bool:
    """Say whether somebody answers a guest."""
    return inside(domain, f"ping -c 1 -W 1 {address} >/dev/null && echo yes") == "yes"


@dataclass
class Wired:
    """A stage whose host has a bridge and a switch."""

    stage: LibvirtStage
    switch: OpenVswitch

    def outside(self, *command: str) -> "subprocess.CompletedProcess[str]":
        """Run something in the network that the host is in."""
        namespace = self.stage.daemon.namespace
        within = ["ip", "netns", "exec", namespace, *command]
        return subprocess.run(within, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def wired(libvirt_operator: RunningOperator, api: Api, images: ImageServer) -> Iterator[Wired]:
    """A daemon whose network has more than libvirt's own."""
    with tempfile.TemporaryDirectory(prefix="novacron-wires-") as directory:
        root = Path(directory)
        daemon = LibvirtDaemon(root / "libvirt", before=f"export PATH={root}:$PATH")
        subprocess.run(["ip", "netns", "add", daemon.namespace], check=True)
        try:
            with open_vswitch(daemon.namespace, root / "ovs") as switch:
                switch.client(root)
                daemon.start()
                yield from _on_stage(libvirt_operator, api, images, daemon, switch)
        finally:
            daemon.stop()


def _on_stage(
    operator: RunningOperator,
    api: Api,
    images: ImageServer,
    daemon: LibvirtDaemon,
    switch: OpenVswitch,
) -> Iterator[Wired]:
    scene = Stage(api, operator, operator.namespaces[0], [])
    switch.add_bridge("br-mgmt", "10.0.1.1/24")
    stage = LibvirtStage(scene, "", daemon, images)
    wired = Wired(stage, switch)
    for command in (
        "ip link set lo up",
        "ip link add br-lan type bridge",
        "ip addr add 10.0.2.1/24 dev br-lan",
        "ip addr add fd00:2::1/64 dev br-lan nodad",
        "ip link set br-lan up",
    ):
        assert wired.outside(*command.split()).returncode == 0
    stage.host = scene.add_host(
        driver="libvirt", endpoint=daemon.uri, simulation=None, libvirt={"networks": MAP}
    )
    yield wired
    scene.clear()
    assert stage.left_behind() == (set(), set())
    stage.outside.close()


@pytest.mark.full
@pytest.mark.timeout(600)
def test_a_machine_on_three_networks_with_hooks_and_long_instructions(wired: Wired) -> None:
    """One boot for all that a guest shows, and a second one for what comes with a restart."""
    real = wired.stage
    host = real.scene.api.host(real.host) or {}
    assert {each["name"] for each in host["status"]["networks"]} == {"default", *MAP}
    real.scene.api.create(example(real))
    real.scene.until("wired", lambda obj: condition(obj, "Ready").get("reason") == "HookRunning")
    obj = real.scene.until_running("wired")
    domain = real.domain(obj)
    assert inside(domain, "cat /root/hooks") == "start", "it was ready only then"

    obj = real.scene.until("wired", lambda obj: len(obj["status"].get("ipAddresses", ())) == 4)
    assert obj["status"]["ipAddresses"][1:] == ["10.0.1.10", "10.0.2.10", "fd00:2::10"]
    for address in ("10.0.1.1", "10.0.2.1", "fd00:2::1"):
        eventually(
            partial(reaches, domain, address),
            lambda: f"{wired.switch.vsctl('show')}\n{inside(domain, 'ip addr; ip route')}",
        )
    routes = inside(domain, "ip route")
    assert re.search(r"default via 10\.0\.1\.1 dev eth1 +metric 200", routes), routes
    assert re.search(r"default via \S+ dev eth0", routes), "that of the lease beside it"
    assert "nameserver 10.0.2.1" in inside(domain, "cat /etc/resolv.conf")
    assert "example.test" in inside(domain, "cat /etc/resolv.conf")
    assert "vnet" in wired.switch.vsctl("list-ports", "br-mgmt")
    digest = hashlib.sha256(LONG.encode()).hexdigest()
    # The guest carries out its instructions while its agent answers already.
    eventually(
        lambda: digest in inside(domain, "sha256sum </srv/long"),
        lambda: inside(domain, "ls -l /srv"),
    )
    eventually(
        lambda: KEY in inside(domain, "cat /root/.ssh/authorized_keys"),
        lambda: inside(domain, "ls -lR /root"),
    )

    _plugs_and_pulls(wired)
    _restarts_for_an_address(wired)


def _plugs_and_pulls(wired: Wired) -> None:
    """The guest goes on, uses what it is given, and lets go of what is taken."""
    real = wired.stage
    obj = real.scene.until_running("wired")
    domain, pid = real.domain(obj), qemu_pid(real, real.domain(obj))
    before = inside(domain, "cat /sys/class/net/eth*/address").split()
    more = [*NETWORKS, {"name": "extra", "type": "user"}]
    real.patch("wired", {"template": {"spec": {"networks": more}}})
    eventually(
        lambda: "10.0.2.15" in inside(domain, "ip -4 addr show dev eth3 2>&1"),
        lambda: inside(domain, "ip addr"),
    )
    assert inside(domain, "cat /sys/class/net/eth*/address").split()[:3] == before
    # Taken from the midst: the others keep who they are.
    fewer = [each for each in more if each["name"] != "lan"]
    real.patch("wired", {"template": {"spec": {"networks": fewer}}})
    eventually(
        lambda: before[2] not in inside(domain, "cat /sys/class/net/eth*/address"),
        lambda: inside(domain, "ip addr"),
    )
    obj = real.scene.until("wired", lambda obj: not condition(obj, "RestartRequired"))
    assert qemu_pid(real, domain) == pid, "the same guest"
    assert inside(domain, "cat /sys/class/net/eth*/address").split()[:2] == before[:2]
    assert inside(domain, "cat /root/hooks") == "start"


def _restarts_for_an_address(wired: Wired) -> None:
    """A guest is told its addresses when it boots; hooks are done before and after."""
    real = wired.stage
    moved = [{"name": "management", "ipv4": {"method": "static", "address": "10.0.1.11/24"}}]
    real.patch("wired", {"template": {"spec": {"networks": moved}}})
    told = real.scene.until("wired", lambda obj: bool(condition(obj, "RestartRequired")))
    assert "networks" in condition(told, "RestartRequired")["message"]
    obj = real.scene.until(
        "wired",
        lambda obj: (
            obj["status"].get("ipAddresses") == ["10.0.1.11"]
            and condition(obj, "Ready").get("status") == "True"
        ),
    )
    domain = real.domain(obj)
    assert inside(domain, "cat /root/hooks").split() == ["start", "stop", "start"]
    eventually(partial(reaches, domain, "10.0.1.1"), lambda: inside(domain, "ip addr"))
    real.scene.api.delete_machine(real.scene.namespace, "wired")
    real.scene.until_gone("wired")
    assert wired.switch.vsctl("list-ports", "br-mgmt").strip() == "", "no port is left behind"
