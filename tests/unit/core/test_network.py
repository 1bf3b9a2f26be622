"""Which interfaces can be plugged in on a host, by name and type."""

import pytest

from novacron.core.machine import Nic
from novacron.core.network import HostNetwork, network_need, network_offers, why_out_of_reach

NETWORKS = (HostNetwork("default", ("bridge",)), HostNetwork("management", ("ovs",)))


@pytest.mark.parametrize(
    ("nic", "why"),
    [
        (Nic("default"), None),
        (Nic("default", type="bridge"), None),
        (Nic("management"), None),
        (Nic("management", type="ovs"), None),
        (Nic("anything", type="user"), None),
        (Nic("storage"), "network storage is not among its networks"),
        (Nic("management", type="bridge"), "its network management is of type ovs, not bridge"),
    ],
)
def test_a_name_and_a_type_must_be_the_host_s(nic: Nic, why: str | None) -> None:
    """A guess would plug a machine into somebody else's network."""
    assert why_out_of_reach(nic, NETWORKS) == why


def test_needs_and_offers_are_compared_as_words() -> None:
    """So that the placer needs to know nothing of networks."""
    offers = network_offers(NETWORKS)
    assert offers == {
        "default",
        "default of type bridge",
        "management",
        "management of type ovs",
    }
    assert network_need(Nic("management", type="ovs")) in offers
    assert network_need(Nic("management", type="bridge")) not in offers
    assert network_need(Nic("any", type="user")) is None
