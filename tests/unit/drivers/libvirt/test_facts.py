"""What a real host says of its CPUs, memory and storage."""

from collections.abc import Iterator
from xml.etree import ElementTree as ET

import libvirt
import pytest

from libvirt_daemon import shared_daemon
from machines import host
from novacron.core.devices import HostDevice
from novacron.core.errors import Rejected
from novacron.core.host import HostReport, NumaCell
from novacron.core.offer import OfferKind
from novacron.drivers.libvirt.cpu import guest_cpu, numa_cells
from novacron.drivers.libvirt.domain import Accelerator
from novacron.drivers.libvirt.facts import Machinery, facts_of
from novacron.drivers.libvirt.hardware import Hardware
from novacron.drivers.libvirt.host import Bridged, LibvirtHost
from novacron.families.novacron.host_translate import HostKind

SHARE = "4b20d080-1b54-4048-85b3-a6a62d165c01"
TWO_CELLS = """
<capabilities><host><topology><cells num='2'>
<cell id='0'><memory unit='KiB'>2097152</memory><cpus num='3'>
  <cpu id='0'/><cpu id='1'/><cpu id='4'/></cpus></cell>
<cell id='1'><memory unit='KiB'>1048576</memory><cpus num='1'><cpu id='2'/></cpus></cell>
</cells></topology></host></capabilities>
"""


@pytest.fixture
def connection() -> Iterator[libvirt.virConnect]:
    """Return a real host."""
    opened = libvirt.open(shared_daemon().uri)
    yield opened
    opened.close()


def test_cells_have_their_cpus_and_memory() -> None:
    """Sets of CPUs are written as Linux writes them."""
    assert numa_cells(ET.fromstring(TWO_CELLS)) == (
        NumaCell(0, "0-1,4", 2048),
        NumaCell(1, "2", 1024),
    )


def test_a_real_host_tells_what_it_has(connection: libvirt.virConnect) -> None:
    """Every pool that is started is counted, and the cells have all CPUs."""
    real = LibvirtHost("real", shared_daemon().uri)
    facts = facts_of(connection, real, Machinery(connection))
    (place,) = (each for each in facts.storage if each.name == "novacron")
    assert 0 < place.available_mib <= place.capacity_mib
    assert facts.numa[0].cpus.startswith("0")
    assert facts.guest_cpu_model
    if facts.accelerator == "TCG":
        assert facts.guest_cpu_model == "qemu64"
        assert {"sse2", "lm"} <= set(facts.guest_cpu_features)


class TwoDevices(Hardware):
    """What a host with a GPU and a share of one offers."""

    def offered(self, connection: libvirt.virConnect) -> tuple[HostDevice, ...]:  # noqa: ARG002
        return (
            HostDevice("0000:3b:00.0", "gpu", "nvidia", "tesla-t4", numa_node=1),
            HostDevice(SHARE, "mdev", "nvidia", "grid-t4-2q"),
        )


def test_devices_come_into_the_status_of_their_host(connection: libvirt.virConnect) -> None:
    """As the placer reads them there; no hardware of that sort is here."""
    machinery = Machinery(connection)
    machinery.hardware = TwoDevices()
    facts = facts_of(connection, LibvirtHost("real", shared_daemon().uri), machinery)
    obj = host("real") | {"metadata": {"name": "real", "uid": "1", "generation": 1}}
    status = HostKind().status(obj, HostReport((), facts, None, None))
    share = {"address": SHARE, "type": "mdev", "vendor": "nvidia", "model": "grid-t4-2q"}
    gpu = {"address": "0000:3b:00.0", "type": "gpu", "vendor": "nvidia", "model": "tesla-t4"}
    assert status["devices"] == [gpu | {"numaNode": 1}, share]
    assert HostKind().host(obj | {"status": status}).devices == facts.devices


def test_a_bridge_that_is_not_there_takes_no_machines(connection: libvirt.virConnect) -> None:
    """They would be placed there and could never start; its owner reads why in the status."""
    mapped = {
        "lan": Bridged("bridge", "lo"),
        "office": Bridged("ovs", "br-nowhere"),
        "out": Bridged("user"),
    }
    real = LibvirtHost("real", shared_daemon().uri, networks=mapped)
    facts = facts_of(connection, real, Machinery(connection))
    obj = host("real") | {"metadata": {"name": "real", "uid": "1", "generation": 1}}
    status = HostKind().status(obj, HostReport((), facts, None, None))
    assert {each["name"]: each.get("message") for each in status["networks"]} == {
        "default": None,
        "lan": None,
        "office": "bridge br-nowhere is not there: make it, or change spec.libvirt.networks",
        "out": None,
    }
    offers = HostKind().host(obj | {"status": status}).offers
    networks = {each.name for each in offers if each.kind is OfferKind.NETWORK}
    assert {"lan", "lan of type bridge", "out"} < networks
    assert not {"office", "office of type ovs", "*"} & networks


def test_a_host_can_be_told_which_cpu_its_machines_see(connection: libvirt.virConnect) -> None:
    """So that hosts which differ can take each other's machines; a wrong name is refused."""
    real = LibvirtHost("real", shared_daemon().uri)
    less = facts_of(connection, real, Machinery(connection, "qemu64"))
    more = facts_of(connection, real, Machinery(connection, "Nehalem"))
    assert more.guest_cpu_model == "Nehalem"
    assert "sse4.2" in set(more.guest_cpu_features) - set(less.guest_cpu_features)
    nehalem, westmere = (Machinery(connection, name).cpu for name in ("Nehalem", "Westmere"))
    assert westmere.can_take_over(nehalem)
    assert not nehalem.can_take_over(westmere)
    with pytest.raises(Rejected, match="cannot have the CPU Nehelam: set spec"):
        facts_of(connection, real, Machinery(connection, "Nehelam"))


def test_with_the_hosts_own_cpu_its_features_are_told(connection: libvirt.virConnect) -> None:
    """They decide where a machine can move; asked of emulation here, as KVM is asked elsewhere."""
    model, features = guest_cpu(connection, Accelerator("qemu", "host-model"))
    assert model
    assert {"sse2", "lm"} <= set(features)
