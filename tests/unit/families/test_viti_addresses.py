"""Addresses set aside for an interface, by hand or by whoever hands them out."""

from typing import Any

import pytest

from novacron.core.errors import Rejected
from novacron.families.viti.addresses import Addresses, addresses_of

MAC = "52:54:00:aa:00:01"


def network(part: str, **entry: Any) -> dict[str, Any]:
    others = {"macAddress": "52:54:00:aa:00:02", "ipv4Addresses": ["10.0.0.9/24"]}
    interfaces = [others, {"macAddress": MAC.upper()} | entry]
    return {"spec": {"vlan": 7}, "status": {}} | {part: {"networkInterfaces": interfaces}}


@pytest.mark.parametrize("part", ["spec", "status"])
def test_an_interface_finds_its_own_by_its_mac_address(part) -> None:
    """However that is written, and wherever."""
    found = addresses_of(
        network(
            part,
            ipv4Addresses=["10.0.0.5"],
            ipv4Subnet="10.0.0.0/26",
            ipv4Gateway="10.0.0.1",
            ipv6Addresses=["fd00::5/64"],
            dns=["10.0.0.1"],
        ),
        MAC,
    )
    assert found == Addresses("10.0.0.5/26", "10.0.0.1", "fd00::5/64", None, ("10.0.0.1",))


def test_upstream_writes_the_mac_in_spec_and_the_address_in_status() -> None:
    """Only together do they say something."""
    both = network("status", ipv4Addresses=["10.0.0.5/24"])
    both["spec"] = {"networkInterfaces": [{"macAddress": MAC}]}
    assert addresses_of(both, MAC).address == "10.0.0.5/24"


@pytest.mark.parametrize("how", [{"dhcpReserved": True}, {"allocationMethod": "dhcp"}])
def test_what_dhcp_hands_out_is_not_told_to_the_guest(how) -> None:
    """It would stop asking, and keep an address that was given to another."""
    assert addresses_of(network("status", ipv4Addresses=["10.0.0.5/24"], **how), MAC) == Addresses()


def test_an_interface_nobody_thought_of_has_nothing_set_aside() -> None:
    """It asks the network."""
    assert addresses_of({"spec": {"vlan": 7}}, MAC) == Addresses()


def test_an_address_without_the_size_of_its_network_is_refused() -> None:
    """A guess would cut the guest off from its neighbours."""
    with pytest.raises(Rejected, match=r"write it as 10\.0\.0\.5/24 or the like, or set"):
        addresses_of(network("spec", ipv4Addresses=["10.0.0.5"]), MAC)
