"""A real guest moves between hosts on which the name of its network means different bridges."""

import subprocess
from collections.abc import Iterator
from functools import partial
from xml.etree import ElementTree as ET

import libvirt
import pytest

from api import Api
from e2e.conftest import Stage
from e2e.libvirt.moving import FleetStage
from inside_guest import agent_answers, inside
from machines import Object
from novacron.localcluster.hypervisor import Fleet, Hypervisor
from operators import RunningOperator, eventually
from rights import ROOT

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not ROOT, reason="bridges of their own need root"),
]

BRIDGES = ("br-office", "lan0")
HERE, GUEST = "10.9.8.1", "10.9.8.10"
LAN = {"name": "lan", "ipv4": {"method": "static", "address": f"{GUEST}/24"}}


def on(host: Hypervisor, *command: str) -> str:
    """Run something in the network of a host."""
    within = ["ip", "netns", "exec", host.namespace or "", *command]
    return subprocess.run(within, check=True, capture_output=True, text=True, timeout=30).stdout


@pytest.fixture
def wired(libvirt_operator: RunningOperator, api: Api, fleet: Fleet) -> Iterator[FleetStage]:
    """Two hosts with a bridge each, called otherwise, that machines know as lan."""
    for host, bridge in zip(fleet.hosts, BRIDGES, strict=True):
        on(host, "ip", "link", "add", bridge, "type", "bridge")
        on(host, "ip", "addr", "add", f"{HERE}/24", "dev", bridge)
        on(host, "ip", "link", "set", bridge, "up")
    scene = Stage(api, libvirt_operator, libvirt_operator.namespaces[0], [])
    networks = [{"lan": {"type": "bridge", "bridge": bridge}} for bridge in BRIDGES]
    stage = FleetStage.declared(scene, fleet, "shared", networks=networks)
    yield stage
    scene.clear()
    assert stage.left_behind() == []


def bridges(domain: libvirt.virDomain, flags: int = 0) -> list[str]:
    """Return the bridge of each interface that is plugged into one, as libvirt itself says."""
    found = ET.fromstring(domain.XMLDesc(flags)).findall("devices/interface[@type='bridge']/source")
    return [each.get("bridge", "") for each in found]


def reaches_its_host(domain: libvirt.virDomain) -> bool:
    """Say whether the bridge answers the guest."""
    return inside(domain, f"ping -c 1 -W 1 {HERE} >/dev/null && echo yes") == "yes"


def works_on(stage: FleetStage, obj: Object, number: int) -> None:
    """See that the guest is plugged into the bridge of one host, and is heard there."""
    host, bridge = stage.fleet.hosts[number], BRIDGES[number]
    with stage.domain(obj, number) as domain:
        eventually(lambda: agent_answers(domain), lambda: "its agent answers")
        assert bridges(domain) == [bridge]
        assert bridges(domain, libvirt.VIR_DOMAIN_XML_INACTIVE) == [bridge]
        assert "vnet" in on(host, "ip", "-o", "link", "show", "master", bridge)
        eventually(partial(reaches_its_host, domain), lambda: inside(domain, "ip addr"))


def test_a_guest_is_plugged_into_the_bridge_of_the_host_that_it_moves_to(
    wired: FleetStage,
) -> None:
    """While it runs: the name stays, the bridge is that of the host."""
    obj = wired.run("roamer", networks=[LAN])
    before = wired.tick(obj, 0)
    works_on(wired, obj, 0)
    wired.ask("roamer", migrate_to=wired.hosts[1])
    done = wired.moved("roamer")
    assert done["status"]["migration"]["result"] == "Succeeded", done["status"]["migration"]
    works_on(wired, obj, 1)
    assert wired.tick(obj, 1) > before
    assert "vnet" not in on(wired.fleet.hosts[0], "ip", "-o", "link", "show", "type", "tun")
