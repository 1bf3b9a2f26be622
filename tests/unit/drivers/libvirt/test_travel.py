"""What of a domain's XML changes for another host, and what must not."""

from xml.etree import ElementTree as ET

import pytest

from novacron.drivers.libvirt.interfaces import interface, plugged_in
from novacron.drivers.libvirt.mark import NAMESPACE, Mark
from novacron.drivers.libvirt.ports import Port
from novacron.drivers.libvirt.travel import (
    SENT,
    adapted,
    disks_of,
    is_marked_as_sent,
    marked_as_sent,
    pools_of,
    unmarked,
    with_plain_cpu,
    without_hardware,
)

FIRST, SECOND = "52:54:00:00:00:01", "52:54:00:00:00:02"
ONE = Port("bridge", "br-one")
OTHER = Port("bridge", "br-other")
TAGGED = Port("bridge", "br-switch", is_ovs=True, vlan=42)
SWITCHED = Port("bridge", "ovs0", is_ovs=True)
OWN = Port("network", "default")
USER = Port("user")
# As libvirt tells of a guest that runs: with where it is plugged in on the host at present.
RUNNING = f"""<domain type="kvm"><name>default.web</name><uuid>u</uuid>
  <metadata><n:machine xmlns:n="{NAMESPACE}" uid="u">
    <n:volume name="data" target="vdc" pool="ssd-here" file="data" made="yes"/>
    <volume name="old" target="vdd" pool="ssd-here" file="old" detached="yes"/>
    <volume name="odd" target="vde" pool="odd-here" file="odd"/></n:machine></metadata>
  <cpu mode="custom" match="exact"><model>EPYC</model><feature name="x"/><topology sockets="1"/>
    <numa><cell id="0"/></numa></cpu>
  <devices>
    <disk type="volume"><driver type="qcow2"/><source pool="here" volume="root" index="3"/>
      <backingStore type="file"><source file="/here/image"/><backingStore/></backingStore>
      <target dev="vda"/></disk>
    <disk type="volume"><source pool="ssd-here" volume="data"/><backingStore/>
      <target dev="vdc"/></disk>
    <disk type="file" device="cdrom"><target dev="sda"/></disk>
    <interface type="network"><mac address="{FIRST.upper()}"/>
      <source network="default" portid="p" bridge="virbr0"/><target dev="vnet7"/>
      <model type="virtio"/><address type="pci" bus="0x01"/></interface>
    <interface type="bridge"><mac address="{SECOND}"/><source bridge="br-one"/>
      <virtualport type="openvswitch"><parameters interfaceid="i"/></virtualport>
      <vlan><tag id="7"/></vlan><model type="virtio"/></interface>
    <serial type="pty"><log file="/here/console.log" append="on"/></serial>
    <graphics type="vnc" port="5903" autoport="yes"/>
    <hostdev mode="subsystem"/>
  </devices></domain>"""


# The pools of the other host: what was detached is in no draft, and comes along all the same.
THERE = {"root": "there", "data": "ssd-there", "old": "ssd-there"}


def draft(*ports: Port, name: str = "default.web") -> str:
    """Return how the other host would have the machine, plugged in there."""
    plugs = zip((FIRST, SECOND), ports, strict=False)
    wires = "".join(ET.tostring(interface(*plug), encoding="unicode") for plug in plugs)
    disk = '<disk type="volume"><source pool="{}" volume="{}"/><target dev="{}"/></disk>'
    disks = disk.format("there", "root", "vda") + disk.format("ssd-there", "data", "vdd")
    log = '<serial type="pty"><log file="/there/console.log" append="on"/></serial>'
    return f"<domain><name>{name}</name><devices>{disks}{wires}{log}</devices></domain>"


def moved(there: str) -> str:
    """Return the guest as the other host is to have it."""
    return adapted(RUNNING, there, THERE)


def interfaces(xml: str) -> list[ET.Element]:
    """Return the interfaces of a domain."""
    return ET.fromstring(xml).findall("devices/interface")


@pytest.mark.parametrize("port", [ONE, OTHER, TAGGED, SWITCHED, OWN, USER], ids=str)
def test_every_interface_is_plugged_in_where_the_other_host_says(port: Port) -> None:
    """From any kind of port into any other, and nothing of the old one is left."""
    for ports in ((port, OTHER), (OTHER, port)):
        found = plugged_in(interfaces(moved(draft(*ports))))
        assert [each.port for each in found] == list(ports)


def test_an_interface_keeps_all_that_the_guest_sees_of_it() -> None:
    """Its hardware address, its model and its slot; of the old host's bridge nothing is left."""
    first, second = interfaces(moved(draft(TAGGED, OTHER)))
    assert [each.attrib for each in first.findall("source")] == [{"bridge": "br-switch"}]
    for found, mac in ((first, FIRST.upper()), (second, SECOND)):
        address, model = found.find("mac"), found.find("model")
        assert address is not None
        assert address.get("address") == mac
        assert model is not None
        assert model.get("type") == "virtio"
    assert first.find("address") is not None
    assert second.find("virtualport") is None
    assert second.find("vlan") is None


def test_an_interface_that_the_other_host_knows_nothing_of_stays_as_it_is() -> None:
    """Somebody else plugged it in, and libvirt says whether it can come along."""
    _, second = plugged_in(interfaces(moved(draft(OTHER))))
    assert second.port == Port("bridge", "br-one", is_ovs=True, vlan=7)


def test_disks_are_looked_for_in_pools_of_the_other_host() -> None:
    """Under the same names; libvirt numbers what it opens anew."""
    xml = moved(draft(ONE, ONE))
    assert disks_of(xml) == [("there", "root"), ("ssd-there", "data")]
    assert pools_of(xml) == {"root": "there", "data": "ssd-there"}
    assert "index=" not in xml


def test_what_disks_are_on_top_of_is_for_the_other_host_to_find() -> None:
    """A daemon that was started anew tells of images by paths, which may be nowhere else."""
    disks = ET.fromstring(moved(draft(ONE, ONE))).findall("devices/disk")
    assert [disk.find("backingStore") for disk in disks] == [None, None, None]
    assert [disk.find("target") is not None for disk in disks] == [True, True, True]


def test_disks_keep_their_targets_where_the_other_host_would_give_others() -> None:
    """Volumes may be asked for in another order by now; the guest has them where it has them."""
    disks = ET.fromstring(moved(draft(ONE, ONE))).findall("devices/disk")
    targets = [each.get("dev") for disk in disks for each in disk.findall("target")]
    assert targets == ["vda", "vdc", "sda"]


def test_the_mark_tells_of_volumes_in_pools_of_the_other_host() -> None:
    """Or the volume of then seems to be another one, and is taken from the guest that runs."""
    metadata = ET.fromstring(moved(draft(ONE, ONE))).find("metadata")
    assert metadata is not None
    mark = Mark.found(metadata)
    assert mark is not None
    pools = {each.file: each.pool for each in mark.volumes}
    assert pools == {"data": "ssd-there", "old": "ssd-there", "odd": "odd-here"}
    assert [each.made for each in mark.volumes] == [True, False, False]


def test_name_console_and_screen_are_as_the_other_host_has_them() -> None:
    """A port that was free here need not be free there."""
    domain = ET.fromstring(moved(draft(ONE, ONE, name="default.web.1234")))
    log, screen = domain.find("devices/serial/log"), domain.find("devices/graphics")
    assert domain.findtext("name") == "default.web.1234"
    assert log is not None
    assert log.get("file") == "/there/console.log"
    assert screen is not None
    assert screen.get("port") == "-1"


def test_a_plain_cpu_keeps_its_topology_and_memory() -> None:
    """A guest that never runs needs no CPU that only one host has."""
    cpu = ET.fromstring(with_plain_cpu(RUNNING)).find("cpu")
    assert cpu is not None
    assert [each.tag for each in cpu] == ["model", "topology", "numa"]
    assert cpu.findtext("model") == "qemu64"
    assert with_plain_cpu("<domain/>") == "<domain/>"


def test_hardware_of_the_host_stays_behind_and_all_else_comes() -> None:
    """It gets other hardware where it goes."""
    before, after = ET.fromstring(RUNNING), ET.fromstring(without_hardware(RUNNING))
    assert after.find("devices/hostdev") is None
    assert len(after.findall("devices/*")) == len(before.findall("devices/*")) - 1
    assert without_hardware("<domain><devices/></domain>") == "<domain><devices/></domain>"


def test_a_domain_that_is_up_to_be_sent_says_so() -> None:
    """Whether or not it had something written on it before."""
    for xml in ("<domain/>", "<domain><metadata><ours/></metadata></domain>"):
        found = ET.fromstring(marked_as_sent(xml)).findall(f"metadata/{{{SENT}}}sent")
        assert len(found) == 1
        assert is_marked_as_sent(marked_as_sent(xml))
        assert not is_marked_as_sent(unmarked(marked_as_sent(marked_as_sent(xml))))
        assert unmarked(xml) == xml
