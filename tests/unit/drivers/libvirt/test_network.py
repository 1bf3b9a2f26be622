"""The network of machines is there when one is started, whatever happened to it meanwhile."""

import subprocess
from collections.abc import Iterator
from ipaddress import IPv4Network
from xml.etree import ElementTree as ET

import libvirt
import pytest

from libvirt_daemon import shared_daemon
from novacron.drivers.libvirt.network import ensure_network, subnets

OURS = "nova-net"
THEIRS = "<network><name>{name}</name><bridge name='theirs0'/>{address}</network>"


@pytest.fixture
def connection() -> Iterator[libvirt.virConnect]:
    """A daemon in a network of its own; the networks of the test are gone in the end."""
    opened = libvirt.open(shared_daemon().uri)
    yield opened
    for network in opened.listAllNetworks():
        if network.name() == OURS:
            if network.isActive():
                network.destroy()
            network.undefine()
    opened.close()


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", "-netns", shared_daemon().namespace, *arguments], check=True)


@pytest.fixture
def taken() -> Iterator[None]:
    """Somebody else has the addresses that the network would take first."""
    first = subnets(OURS)[0]
    _ip("link", "add", "other0", "type", "bridge")
    _ip("address", "add", f"{first[1]}/{first.prefixlen}", "dev", "other0")
    _ip("link", "set", "other0", "up")
    yield
    _ip("link", "delete", "other0")


def _subnet(connection: libvirt.virConnect) -> IPv4Network:
    xml = connection.networkLookupByName(OURS).XMLDesc()
    address = ET.fromstring(xml).find("ip")
    return IPv4Network(f"{address.get('address')}/{address.get('netmask')}", strict=False)


def test_a_network_is_made_once_and_started_with_its_host(connection):
    """Asking again changes nothing."""
    ensure_network(connection, OURS)
    before = connection.networkLookupByName(OURS).XMLDesc()
    ensure_network(connection, OURS)
    network = connection.networkLookupByName(OURS)
    assert network.XMLDesc() == before
    assert network.isActive()
    assert network.autostart()
    assert _subnet(connection) == subnets(OURS)[0]


def test_addresses_of_others_are_left_to_them(connection, taken):
    """Another cluster on the same machine was there first."""
    ensure_network(connection, OURS)
    assert _subnet(connection) == subnets(OURS)[1]


def test_a_network_that_was_taken_down_is_started(connection):
    """By somebody with virsh, or because the host was started anew."""
    ensure_network(connection, OURS)
    connection.networkLookupByName(OURS).destroy()
    ensure_network(connection, OURS)
    assert connection.networkLookupByName(OURS).isActive()
    assert _subnet(connection) == subnets(OURS)[0]


def test_a_network_whose_addresses_were_taken_meanwhile_moves(connection, request):
    """Better other addresses than no machine that starts."""
    ensure_network(connection, OURS)
    connection.networkLookupByName(OURS).destroy()
    request.getfixturevalue("taken")
    ensure_network(connection, OURS)
    network = connection.networkLookupByName(OURS)
    assert network.isActive()
    assert network.autostart()
    assert _subnet(connection) == subnets(OURS)[1]


def test_a_network_of_the_users_own_is_never_changed(connection, taken):
    """It is started or it is not; what is in it is theirs."""
    first = subnets(OURS)[0]
    address = f"<ip address='{first[1]}' netmask='{first.netmask}'/>"
    connection.networkDefineXML(THEIRS.format(name=OURS, address=address))
    before = connection.networkLookupByName(OURS).XMLDesc()
    with pytest.raises(libvirt.libvirtError):
        ensure_network(connection, OURS)
    assert connection.networkLookupByName(OURS).XMLDesc() == before


def test_networks_of_different_names_rarely_want_the_same_addresses():
    """Several clusters on one machine each have a network of their own."""
    wanted = {subnets(f"nova-{number:06x}")[0] for number in range(10)}
    assert len(wanted) > 5
