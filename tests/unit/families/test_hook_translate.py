"""What hooks and networks of a template mean to the core."""

from datetime import timedelta

from declared import host, vm
from novacron.core.hooks import GuestProgram, Hooks, HttpRequest
from novacron.core.machine import Machine, Nic
from novacron.core.offer import Offer, OfferKind
from novacron.families.novacron.host_translate import HostKind
from novacron.families.novacron.translate import VirtualMachineKind


def machine(**template: object) -> Machine:
    """Return what a stored object with this template declares."""
    obj = vm(**template)
    obj["metadata"] |= {"uid": "uid-1", "generation": 1, "namespace": "default"}
    return VirtualMachineKind().machine(obj)


def test_hooks_are_programs_and_requests_with_their_time() -> None:
    """Whoever gave no time gets five minutes."""
    hooks = machine(
        lifecycle={
            "preStart": {
                "httpGet": {
                    "port": 8443,
                    "path": "/up",
                    "scheme": "HTTPS",
                    "httpHeaders": [{"name": "X", "value": "1"}],
                }
            },
            "preStop": {"exec": {"command": ["/stop", "now"], "timeoutSeconds": 30}},
        }
    ).hooks
    assert hooks == Hooks(
        HttpRequest(
            8443, "/up", None, encrypted=True, headers=(("X", "1"),), timeout=timedelta(minutes=5)
        ),
        GuestProgram(("/stop", "now"), timedelta(seconds=30)),
    )


def test_a_machine_without_hooks_has_none() -> None:
    """Nobody is asked to do anything for it."""
    assert machine().hooks == Hooks()


def test_a_network_keeps_its_type_and_how_it_gets_its_addresses() -> None:
    """DHCP for IPv6 is asked for, for IPv4 it is what nobody has to say."""
    networks = [{"name": "m", "type": "ovs", "ipv6": {"method": "dhcp"}}, {"name": "d"}]
    assert machine(networks=networks).nics == (Nic("m", type="ovs", dhcp6=True), Nic("d"))


def test_networks_and_hooks_are_needs_that_the_placer_compares() -> None:
    """A host that lacks one is left out, rather than found to lack it afterwards."""
    declared = machine(
        networks=[{"name": "m", "type": "ovs"}, {"name": "d"}, {"name": "u", "type": "user"}],
        lifecycle={"preStop": {"exec": {"command": ["/stop"]}}},
    )
    assert declared.needs == {
        Offer(OfferKind.NETWORK, "m of type ovs"),
        Offer(OfferKind.NETWORK, "d"),
        Offer(OfferKind.CAPABILITY, "GuestCommands"),
    }
    assert machine().needs == frozenset()


def test_a_host_offers_the_networks_that_it_was_found_to_reach() -> None:
    """And any at all as long as nobody has found out."""
    obj = host()
    obj["metadata"] |= {"uid": "uid-1", "generation": 1}
    assert Offer(OfferKind.NETWORK, "*") in HostKind().host(obj).offers
    obj["status"] = {"networks": [{"name": "m", "types": ["ovs"]}]}
    offers = {each.name for each in HostKind().host(obj).offers if each.kind == OfferKind.NETWORK}
    assert offers == {"m", "m of type ovs"}
