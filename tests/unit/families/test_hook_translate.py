"""What hooks and networks of a template mean to the core."""

from datetime import timedelta

from declared import vm
from novacron.core.hooks import GuestProgram, Hooks, HttpRequest
from novacron.core.machine import Machine, Nic
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


def test_a_machine_with_hooks_leaves_nothing_unanswered() -> None:
    """There is somebody who acts on them."""
    declared = machine(lifecycle={"preStop": {"exec": {"command": ["/stop"]}}})
    assert declared.unanswered == ()
    assert machine().hooks == Hooks()


def test_a_network_keeps_its_type_and_how_it_gets_its_addresses() -> None:
    """DHCP for IPv6 is asked for, for IPv4 it is what nobody has to say."""
    networks = [{"name": "m", "type": "ovs", "ipv6": {"method": "dhcp"}}, {"name": "d"}]
    assert machine(networks=networks).nics == (Nic("m", type="ovs", dhcp6=True), Nic("d"))
