"""Where interfaces are plugged in: the host's map of names, and the XML that comes of it."""

from xml.etree import ElementTree as ET

import pytest

from novacron.core.errors import Rejected
from novacron.core.machine import Nic
from novacron.drivers.libvirt.host import Bridged, LibvirtHost
from novacron.drivers.libvirt.interfaces import interface, mac_of, plugged_in
from novacron.drivers.libvirt.ports import Port, port_of

MAPPED = {
    "management": Bridged("ovs", "br-mgmt"),
    "tagged": Bridged("ovs", "br-mgmt", vlan=42),
    "storage": Bridged("bridge", "br0"),
    "out": Bridged("user"),
}
HOST = LibvirtHost("a", "qemu:///system", network="novacron", networks=MAPPED)
SESSION = LibvirtHost("s", "qemu:///session")

XML = {
    "default": "<interface type='network'>{mac}<source network='novacron'/>{model}</interface>",
    "storage": "<interface type='bridge'>{mac}<source bridge='br0'/>{model}</interface>",
    "management": "<interface type='bridge'>{mac}<source bridge='br-mgmt'/>"
    "<virtualport type='openvswitch'/>{model}</interface>",
    "tagged": "<interface type='bridge'>{mac}<source bridge='br-mgmt'/>"
    "<virtualport type='openvswitch'/><vlan><tag id='42'/></vlan>{model}</interface>",
    "out": "<interface type='user'>{mac}{model}</interface>",
}


@pytest.mark.parametrize("name", XML)
def test_a_name_becomes_what_the_host_says_it_is(name: str) -> None:
    """This is what libvirt reads, and what is read back from it."""
    port = port_of(HOST, Nic(name))
    written = interface("52:54:00:00:00:01", port)
    parts = {"mac": "<mac address='52:54:00:00:00:01'/>", "model": "<model type='virtio'/>"}
    wanted = ET.canonicalize(XML[name].format(**parts))
    assert ET.canonicalize(ET.tostring(written, encoding="unicode")) == wanted
    assert [each.port for each in plugged_in([written])] == [port]


def test_what_a_network_makes_of_an_interface_is_no_difference() -> None:
    """A network that is a bridge looks like one in a running guest: no reason to restart it."""
    interface = ET.fromstring(
        "<interface type='bridge'><mac address='52:54:00:00:00:01'/>"
        "<source network='fleet' portid='1' bridge='br0'/><virtualport type='openvswitch'/>"
        "<vlan><tag id='7'/></vlan></interface>"
    )
    assert [each.port for each in plugged_in([interface])] == [Port("network", "fleet")]


def test_a_host_without_bridges_has_user_mode_networking_as_its_own() -> None:
    """So the same machine runs in a session."""
    assert port_of(SESSION, Nic("default", type="bridge")) == Port("user")


@pytest.mark.parametrize("kind", ["sr-iov", "macvlan", "overlay"])
def test_a_type_that_nobody_makes_is_refused_with_what_there_is(kind: str) -> None:
    """The schema knows more types than this driver."""
    with pytest.raises(
        Rejected, match=f"type {kind} is not offered.* bridge, ovs, user"
    ) as refused:
        port_of(HOST, Nic("default", type=kind))
    assert refused.value.reason == "NetworkTypeUnsupported"


def test_an_unknown_name_is_refused_with_what_to_set() -> None:
    """Whoever reads it can copy it."""
    with pytest.raises(Rejected) as refused:
        port_of(HOST, Nic("backup", type="ovs"))
    assert refused.value.reason == "NetworkNotReached"
    assert "spec.libvirt.networks.backup of the Host" in str(refused.value)
    assert "{type: ovs, bridge: br-backup}" in str(refused.value)


def test_a_hardware_address_stays_when_others_come_and_go() -> None:
    """It is the machine's and the name's alone; guests know their interfaces by it."""
    assert mac_of("uid-1", Nic("a")) == mac_of("uid-1", Nic("a", address="10.0.0.1/24"))
    assert mac_of("uid-1", Nic("a")) != mac_of("uid-1", Nic("b"))
    assert mac_of("uid-1", Nic("a")) != mac_of("uid-2", Nic("a"))
    assert mac_of("uid-1", Nic("a", mac="52:54:00:AB:CD:EF")) == "52:54:00:ab:cd:ef"
    first = int(mac_of("uid-1", Nic("a")).partition(":")[0], 16)
    assert first & 3 == 2, "unicast, locally administered"
