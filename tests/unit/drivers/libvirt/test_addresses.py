"""What a guest's agent says of its addresses: libvirt hands on whatever that is."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import libvirt
import pytest

from novacron.core.machine import MachinePlan, MachineRef, Nic, Resources
from novacron.drivers.libvirt.addresses import addresses_of
from novacron.drivers.libvirt.defined import Defined
from novacron.drivers.libvirt.interfaces import Plugged, mac_of
from novacron.drivers.libvirt.look import Domain, Known, observed
from novacron.drivers.libvirt.mark import Mark
from novacron.drivers.libvirt.ports import Port

UID = "9a6a2f0e-6d5f-4d8f-9d3a-0a3c1f2b4c5d"
NIC = Nic("wide")
MAC = mac_of(UID, NIC)


class Guest:
    """A running guest whose agent says what it was told to."""

    def __init__(self, says: object) -> None:
        self.says = says

    def agentSetResponseTimeout(self, seconds: int) -> None:  # noqa: N802 - libvirt's name
        """Answer at once."""

    def interfaceAddresses(self, source: int) -> object:  # noqa: N802 - libvirt's name
        """Tell of the interfaces."""
        del source
        if isinstance(self.says, Exception):
            raise self.says
        return self.says

    def snapshotNum(self) -> int:  # noqa: N802 - libvirt's name
        """Have none."""
        return 0


def definition() -> Defined:
    """Return how the guest is defined: an agent listens at its one interface."""
    plan = MachinePlan(MachineRef(UID, "default", "vm", "far"), Resources(1, 192, 256), "i", (NIC,))
    plugged = (Plugged(MAC, Port("bridge", "br0")),)
    written = Defined.written(plan, "default.vm", "seed", plugged, Mark.of(plan), "<domain/>")
    return replace(written, agent=True)


def said(*addresses: object) -> dict[str, Any]:
    """Return what an agent says that has these at its one interface."""
    return {"eth0": {"hwaddr": MAC, "addrs": [{"addr": each} for each in addresses]}}


def found(says: object) -> tuple[str, ...]:
    """Return the addresses that are understood of what an agent says."""
    return addresses_of(cast("libvirt.virDomain", Guest(says)), definition())[MAC]


def told(says: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what is told of the guest to whoever asks for the machine."""
    now = definition()
    handle = cast("libvirt.virDomain", Guest(says))
    domain = Domain(handle, now, now, libvirt.VIR_DOMAIN_RUNNING, 1)
    return observed(domain, Known(), complete=True).addresses


def test_addresses_are_told_in_their_order_without_those_of_no_use() -> None:
    """Otherwise the tests below say nothing."""
    assert found(said("fd00::1", "127.0.0.1", "10.0.0.9", "fe80::1", "10.0.0.7")) == (
        "10.0.0.7",
        "10.0.0.9",
        "fd00::1",
    )


@pytest.mark.parametrize("odd", ["", "soon", "10.0.0.1/24", None, [], "1" * 5000], ids=repr)
def test_what_is_no_address_is_left_out_and_the_others_are_told(odd: object) -> None:
    """Whoever is root in a guest may have its agent say what he likes."""
    assert found(said(odd, "10.0.0.7")) == ("10.0.0.7",)


@pytest.mark.parametrize(
    "odd",
    [None, {"eth0": None}, {"eth0": {}}, {"eth0": {"hwaddr": MAC, "addrs": 3}}, ValueError("utf")],
    ids=repr,
)
def test_an_agent_that_cannot_be_understood_says_nothing(odd: object) -> None:
    """As one that does not answer at all."""
    assert found(odd) == ()


def test_an_address_is_no_longer_than_addresses_are() -> None:
    """What follows the % may be any text, and all of it would be written down."""
    assert found(said("fd00::1%" + "a" * 100_000, "fd00::2")) == ("fd00::2",)


def test_a_guest_has_no_more_addresses_told_than_can_be_written_down() -> None:
    """An object that outgrows the database could not be written any more at all."""
    many = [f"10.0.{each // 256}.{each % 256}" for each in range(5000)]
    assert len(told(said(*many))) == 64
    by_interface = {f"eth{i}": {"hwaddr": MAC, "addrs": [{"addr": a}]} for i, a in enumerate(many)}
    assert len(told(by_interface)) == 64
