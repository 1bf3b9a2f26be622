"""Hardware handed to guests. There is none to hand over here: libvirt itself reads the XML."""

from collections.abc import Iterator
from xml.etree import ElementTree as ET

import libvirt
import pytest

from libvirt_daemon import shared_daemon
from novacron.core.devices import HostDevice
from novacron.core.errors import Rejected
from novacron.core.machine import MachinePlan, MachineRef, Nic, Resources
from novacron.drivers.libvirt.domain import Accelerator, Place, drafted
from novacron.drivers.libvirt.hostdev import handed_over, hostdev
from novacron.drivers.libvirt.mark import Mark
from novacron.drivers.libvirt.ports import Port

GPU = HostDevice("0000:3b:00.0", "gpu", "nvidia", "tesla-t4", 0)
VGPU = HostDevice("5b0c5a3e-6f1d-4a5e-9a43-1f2f0c1f5a11", "mdev", "nvidia", "grid-t4-4q", 1)
GOLDEN = {
    GPU: "<hostdev mode='subsystem' type='pci' managed='yes'><source>"
    "<address domain='0x0000' bus='0x3b' slot='0x00' function='0x0'/></source></hostdev>",
    VGPU: "<hostdev mode='subsystem' type='mdev' model='vfio-pci'><source>"
    "<address uuid='5b0c5a3e-6f1d-4a5e-9a43-1f2f0c1f5a11'/></source></hostdev>",
}


@pytest.fixture
def connection() -> Iterator[libvirt.virConnect]:
    """A real daemon."""
    opened = libvirt.open(shared_daemon().uri)
    yield opened
    opened.close()


@pytest.mark.parametrize("device", GOLDEN, ids=lambda device: device.kind)
def test_a_device_is_written_as_libvirt_documents_it(device: HostDevice) -> None:
    """Golden, because no test here can show that a guest gets it."""
    written = ET.tostring(hostdev(device), encoding="unicode")
    assert ET.canonicalize(written) == ET.canonicalize(GOLDEN[device])


def test_an_address_that_is_none_is_refused() -> None:
    """Rather than another device handed over."""
    with pytest.raises(Rejected, match="has no PCI address"):
        hostdev(HostDevice("card0", "gpu", "nvidia", "tesla-t4"))


def test_libvirt_takes_a_machine_with_devices_and_tells_of_them(
    connection: libvirt.virConnect,
) -> None:
    """What a running guest has is compared with this, to know whether it awaits a restart."""
    ref = MachineRef("0e2f1d3c-0000-4000-8000-000000000001", "default", "gpu", "a")
    plan = MachinePlan(
        ref, Resources(1, 192, 64), "builtin://tiny", (Nic("x"),), devices=(GPU, VGPU)
    )
    place = Place("novacron", "/nowhere", (Port("user"),), Accelerator("qemu", "custom"), 1, 1024)
    domain = connection.defineXML(drafted(plan, "default.gpu", "seed", place).marked(Mark.of(plan)))
    try:
        read = ET.fromstring(domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE))
    finally:
        domain.undefine()
    handed = handed_over(read.findall("devices/hostdev"))
    assert handed == handed_over([hostdev(GPU), hostdev(VGPU)])
    assert len(handed) == 2


def test_other_devices_are_another_recipe() -> None:
    """So a machine whose devices change is set up anew; one without is as it always was."""
    ref = MachineRef("uid", "default", "gpu", "a")
    plain = MachinePlan(ref, Resources(1, 192, 64), "builtin://tiny")
    with_gpu = MachinePlan(ref, Resources(1, 192, 64), "builtin://tiny", devices=(GPU,))
    assert plain.recipe != with_gpu.recipe
