"""Devices that machines can be given are found by the names people use, and the host's own spared.

No hardware of that sort is here, so descriptions of it stand for it.
"""

from pathlib import Path

import libvirt
import pytest

from novacron.core.devices import HostDevice
from novacron.drivers.libvirt import handover
from novacron.drivers.libvirt.hardware import Hardware
from novacron.drivers.libvirt.nodedev import MediatedDevice, PciDevice, plain_name

COMPUTER = """
<device><name>computer</name><capability type='system'>
<hardware><vendor>NovaCron</vendor><serial>1</serial>
<uuid>c7a5fdbd-edaf-9455-926a-d65c16db1809</uuid></hardware>
<firmware><vendor>NovaCron</vendor><version>1</version><release_date>01/01/2026</release_date>
</firmware></capability></device>
"""
PCI = """
<device><name>pci_0000_{bus:02x}_00_{function}</name><parent>computer</parent>{driver}
<capability type='pci'><class>{code}</class>
<domain>0</domain><bus>{bus}</bus><slot>0</slot><function>{function}</function>
<product id='{product}'>{model}</product><vendor id='{vendor}'>{maker}</vendor>
{extra}<iommuGroup number='{bus}'>{members}</iommuGroup><numa node='1'/></capability></device>
"""
MEMBER = "<address domain='0x0000' bus='{bus:#04x}' slot='0x00' function='{function:#x}'/>"
NVIDIA = ("0x10de", "NVIDIA Corporation")
AMD = ("0x1002", "Advanced Micro Devices, Inc. [AMD/ATI]")
INTEL = ("0x8086", "Intel Corporation")
T4 = ("0x1eb8", "TU104GL [Tesla T4]")
SHARES = """
<capability type='mdev_types'><type id='nvidia-231'><name>GRID T4-2Q</name>
<deviceAPI>vfio-pci</deviceAPI><availableInstances>7</availableInstances></type></capability>
"""
SHARE = """
<device><name>mdev_4b20d080_1b54_4048_85b3_a6a62d165c01</name>{path}<parent>pci_0000_05_00_0</parent>
<capability type='mdev'><type id='nvidia-231'/><uuid>4b20d080-1b54-4048-85b3-a6a62d165c01</uuid>
<iommuGroup number='77'/></capability></device>
"""
KNOWN = "4b20d080-1b54-4048-85b3-a6a62d165c01"


def pci(
    bus: int,
    code: str,
    vendor: tuple[str, str],
    product: tuple[str, str],
    driver: str = "vfio-pci",
    *,
    function: int = 0,
    members: tuple[int, ...] = (0,),
    extra: str = "",
) -> str:
    """Return a device as libvirt describes it."""
    return PCI.format(
        bus=bus,
        function=function,
        code=code,
        vendor=vendor[0],
        maker=vendor[1].replace("&", "&amp;"),
        product=product[0],
        model=product[1],
        driver=f"<driver><name>{driver}</name></driver>" if driver else "",
        members="".join(MEMBER.format(bus=bus, function=each) for each in members),
        extra=extra,
    )


def offered(*devices: str) -> tuple[HostDevice, ...]:
    """Return what is offered by a host with these devices."""
    found = [PciDevice.parse(device) for device in devices if "type='pci'" in device]
    shares = [MediatedDevice.parse(device) for device in devices if "type='mdev'" in device]
    return handover.offered(
        {device.name: device for device in found}, [share for share in shares if share]
    )


def test_libvirt_itself_understands_these_descriptions(tmp_path: Path) -> None:
    """Its test driver reads and writes them by the code that it has for real hardware.

    Only drivers it does not take from others, so those are tested without it.
    """
    share = SHARE.format(path=f"<path>/sys/devices/pci0000:00/0000:05:00.0/{KNOWN}</path>")
    card = pci(5, "0x030200", NVIDIA, T4, driver="", extra=SHARES)
    node = tmp_path / "node.xml"
    node.write_text(f"<node>{COMPUTER}{card}{share}</node>")
    connection = libvirt.open(f"test://{node}")
    assert Hardware().offered(connection) == (
        HostDevice("0000:05:00.0", "gpu", "nvidia", "tesla-t4", 1),
        HostDevice(KNOWN, "mdev", "nvidia", "grid-t4-2q", 1),
    )
    connection.close()


def test_a_card_has_the_name_that_people_type() -> None:
    """A machine that asks for vendor nvidia and model tesla-t4 gets this one."""
    card = HostDevice("0000:3b:00.0", "gpu", "nvidia", "tesla-t4", 1)
    assert offered(pci(0x3B, "0x030200", NVIDIA, T4)) == (card,)


def test_without_a_list_of_names_numbers_do() -> None:
    """Small systems come without one; makers whose numbers we know keep their names."""
    nameless = pci(1, "0x030000", ("0x10de", ""), ("0x1eb8", ""))
    stranger = pci(2, "0x020000", ("0x1234", ""), ("0xabcd", ""))
    assert [(device.vendor, device.model) for device in offered(nameless, stranger)] == [
        ("nvidia", "1eb8"),
        ("1234", "abcd"),
    ]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("0x030000", "gpu"),
        ("0x020000", "nic"),
        ("0x010802", "nvme"),
        ("0x010700", "storage"),
        ("0x120000", "accelerator"),
        ("0x0c0330", "other"),
    ],
)
def test_classes_have_names(code: str, kind: str) -> None:
    """The numbers are PCI's own."""
    assert [device.kind for device in offered(pci(1, code, INTEL, ("0x1", "Thing")))] == [kind]


@pytest.mark.parametrize("driver", ["nvme", "ixgbe", "amdgpu"])
def test_what_the_host_uses_itself_is_not_offered(driver: str) -> None:
    """Its own disk, or the card that we reach it by, must not be taken from under it."""
    assert offered(pci(1, "0x010802", INTEL, ("0x1", "Disk"), driver)) == ()


def test_what_no_driver_has_is_offered() -> None:
    """Nobody on the host uses it."""
    assert len(offered(pci(1, "0x030000", AMD, ("0x1", "Card"), driver=""))) == 1


def test_what_the_host_cannot_keep_apart_goes_to_one_machine() -> None:
    """A card and its sound are one thing to the IOMMU; one half in use keeps both here."""
    card = pci(1, "0x030000", AMD, ("0x1", "Navi 21 [Radeon RX 6800]"), members=(0, 1))
    sound = pci(1, "0x040300", AMD, ("0x2", "Sound"), function=1, members=(0, 1))
    assert [device.model for device in offered(sound, card)] == ["radeon-rx-6800"]
    assert offered(card, sound.replace("vfio-pci", "snd_hda_intel")) == ()


def test_without_an_iommu_nothing_can_be_handed_over() -> None:
    """QEMU would refuse to start the machine."""
    device = pci(1, "0x030200", NVIDIA, T4, members=())
    assert offered(device.replace("<iommuGroup number='1'></iommuGroup>", "")) == ()


def test_bridges_are_no_devices_to_hand_over() -> None:
    """They carry the others."""
    assert offered(pci(1, "0x060400", INTEL, ("0x1", "Root Port"), driver="")) == ()


def test_a_share_of_a_card_has_the_name_of_its_sort() -> None:
    """The administrator makes it; the card it is of stays with the host's driver."""
    card = pci(5, "0x030200", NVIDIA, T4, driver="nvidia", extra=SHARES)
    share = SHARE.format(path=f"<path>/sys/devices/pci0000:00/0000:05:00.0/{KNOWN}</path>")
    assert offered(card, share) == (HostDevice(KNOWN, "mdev", "nvidia", "grid-t4-2q", 1),)


def test_a_share_that_is_only_defined_is_not_there() -> None:
    """QEMU would not find it."""
    card = pci(5, "0x030200", NVIDIA, T4, driver="nvidia", extra=SHARES)
    assert offered(card, SHARE.format(path="")) == ()


@pytest.mark.parametrize(
    ("said", "typed"),
    [
        ("GA100 [A100 PCIe 40GB]", "a100-pcie-40gb"),
        ("82599ES 10-Gigabit SFI/SFP+ Network Connection",
         "82599es-10-gigabit-sfi-sfp-network-connection"),
    ],
)  # fmt: skip
def test_names_are_written_as_people_type_them(said: str, typed: str) -> None:
    """Lower case, one dash between words."""
    assert plain_name(said) == typed
