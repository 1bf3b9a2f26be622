"""A real guest moves between hosts on which its network is another bridge, or one of a switch."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from xml.etree import ElementTree as ET

import libvirt
import pytest

from api import Api
from e2e.conftest import Stage
from e2e.libvirt.moving import FleetStage
from fleet import daemon_of
from inside_guest import agent_answers, inside
from machines import Object
from novacron.localcluster.hypervisor import Fleet, Hypervisor
from open_vswitch import OpenVswitch, open_vswitch
from operators import RunningOperator, eventually
from rights import ROOT

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not ROOT, reason="bridges of their own need root"),
]

BRIDGES, SWITCH = ("br-office", "lan0"), "ovs-lan"
HERE, GUEST = "10.9.8.1", "10.9.8.10"
LAN = {"name": "lan", "ipv4": {"method": "static", "address": f"{GUEST}/24"}}


def on(host: Hypervisor, *command: str) -> str:
    """Run something in the network of a host."""
    within = ["ip", "netns", "exec", host.namespace or "", *command]
    return subprocess.run(within, check=True, capture_output=True, text=True, timeout=30).stdout


@contextmanager
def bridge(host: Hypervisor, name: str) -> Iterator[None]:
    """Have a bridge of Linux on a host."""
    on(host, "ip", "link", "add", name, "type", "bridge")
    on(host, "ip", "addr", "add", f"{HERE}/24", "dev", name)
    on(host, "ip", "link", "set", name, "up")
    yield
    on(host, "ip", "link", "delete", name)


@pytest.fixture
def switch(fleet: Fleet) -> Iterator[OpenVswitch]:
    """The second host's Open vSwitch, with nothing in it."""
    second = fleet.hosts[1]
    assert second.namespace
    with (
        tempfile.TemporaryDirectory(prefix="novacron-ovs-") as directory,
        open_vswitch(second.namespace, Path(directory) / "ovs") as switch,
    ):
        switch.show_client(daemon_of(second).pid, Path(directory) / "bin")
        yield switch


def declared(
    operator: RunningOperator, api: Api, fleet: Fleet, *networks: Object
) -> Iterator[FleetStage]:
    """Declare the hosts with what each of them knows as lan."""
    scene = Stage(api, operator, operator.namespaces[0], [])
    maps = [{"lan": each} for each in networks]
    stage = FleetStage.declared(scene, fleet, "shared", networks=maps)
    yield stage
    scene.clear()
    assert stage.left_behind() == []


@pytest.fixture
def wired(libvirt_operator: RunningOperator, api: Api, fleet: Fleet) -> Iterator[FleetStage]:
    """Two hosts with a bridge each, called otherwise, that machines know as lan."""
    networks = [{"type": "bridge", "bridge": name} for name in BRIDGES]
    with bridge(fleet.hosts[0], BRIDGES[0]), bridge(fleet.hosts[1], BRIDGES[1]):
        yield from declared(libvirt_operator, api, fleet, *networks)


@pytest.fixture
def switched(
    libvirt_operator: RunningOperator, api: Api, fleet: Fleet, switch: OpenVswitch
) -> Iterator[FleetStage]:
    """Two hosts, where lan is a bridge of Linux on the one, and one of a switch on the other."""
    switch.add_bridge(SWITCH, f"{HERE}/24")
    networks = [{"type": "bridge", "bridge": BRIDGES[0]}, {"type": "ovs", "bridge": SWITCH}]
    with bridge(fleet.hosts[0], BRIDGES[0]):
        yield from declared(libvirt_operator, api, fleet, *networks)


def bridges(domain: libvirt.virDomain, flags: int = 0) -> list[str]:
    """Return the bridge of each interface that is plugged into one, as libvirt itself says."""
    found = ET.fromstring(domain.XMLDesc(flags)).findall("devices/interface[@type='bridge']/source")
    return [each.get("bridge", "") for each in found]


def reaches_its_host(domain: libvirt.virDomain) -> bool:
    """Say whether the bridge answers the guest."""
    return inside(domain, f"ping -c 1 -W 1 {HERE} >/dev/null && echo yes") == "yes"


def works_on(stage: FleetStage, obj: Object, number: int, name: str) -> None:
    """See that the guest is plugged into the bridge of one host, and is heard there."""
    with stage.domain(obj, number) as domain:
        eventually(lambda: agent_answers(domain), lambda: "its agent answers")
        assert bridges(domain) == [name]
        assert bridges(domain, libvirt.VIR_DOMAIN_XML_INACTIVE) == [name]
        eventually(partial(reaches_its_host, domain), lambda: inside(domain, "ip addr"))


def move(stage: FleetStage, name: str, number: int) -> None:
    """Have a guest go to one of the hosts."""
    stage.ask(name, migrate_to=stage.hosts[number])
    stage.scene.until(name, lambda obj: obj["status"]["nodeName"] == stage.hosts[number])
    migration = stage.moved(name)["status"]["migration"]
    assert (migration["result"], migration["mode"]) == ("Succeeded", "Live"), migration


def ports(host: Hypervisor, name: str) -> list[str]:
    """Return the guests' ends that are plugged into a bridge of Linux."""
    lines = on(host, "ip", "-o", "link", "show", "master", name).splitlines()
    return [line for line in lines if "vnet" in line]


def test_a_guest_is_plugged_into_the_bridge_of_the_host_that_it_moves_to(
    wired: FleetStage,
) -> None:
    """While it runs: the name stays, the bridge is that of the host."""
    here, there = wired.fleet.hosts
    obj = wired.run("roamer", networks=[LAN])
    before = wired.tick(obj, 0)
    works_on(wired, obj, 0, BRIDGES[0])
    assert len(ports(here, BRIDGES[0])) == 1
    move(wired, "roamer", 1)
    works_on(wired, obj, 1, BRIDGES[1])
    assert wired.tick(obj, 1) > before
    assert len(ports(there, BRIDGES[1])) == 1
    assert "vnet" not in on(here, "ip", "-o", "link", "show", "type", "tun")


def test_a_guest_goes_from_a_bridge_to_open_vswitch_and_back(
    switched: FleetStage, switch: OpenVswitch
) -> None:
    """While it runs, and nothing of it is left in the switch that it has left."""
    obj = switched.run("changer", networks=[LAN])
    before = switched.tick(obj, 0)
    works_on(switched, obj, 0, BRIDGES[0])
    move(switched, "changer", 1)
    works_on(switched, obj, 1, SWITCH)
    (port,) = switch.vsctl("list-ports", SWITCH).split()
    assert port.startswith("vnet")
    between = switched.tick(obj, 1)
    move(switched, "changer", 0)
    works_on(switched, obj, 0, BRIDGES[0])
    assert before < between < switched.tick(obj, 0)
    assert switch.vsctl("list-ports", SWITCH).split() == []
