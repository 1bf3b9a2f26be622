"""Networks as hosts reach them: which name leads where, and whether an interface can be plugged in.

A machine says a name and perhaps a type; what that means is the host's. The same answer is given
before a machine is placed and when it is made.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from novacron.core.machine import Nic

__all__ = ["HOST_OWN", "HostNetwork", "network_need", "network_offers", "why_out_of_reach"]

# The network that every host has without being told.
HOST_OWN = "default"
# It needs nothing of the host, so every host has it, under any name.
USER_MODE = "user"


@dataclass(frozen=True, slots=True)
class HostNetwork:
    """A network that a host reaches under a name, and the types that machines may call it.

    ``trouble`` says why no machine can be plugged into it for now.
    """

    name: str
    types: tuple[str, ...]
    trouble: str = ""


def network_offers(networks: Iterable[HostNetwork]) -> frozenset[str]:
    """Return what a host offers: each network by its name alone, and with each of its types."""
    return frozenset(
        offer
        for network in networks
        if not network.trouble
        for offer in (network.name, *(_typed(network.name, kind) for kind in network.types))
    )


def network_need(nic: Nic) -> str | None:
    """Return what an interface needs a host to offer; None where any host will do."""
    if nic.type == USER_MODE:
        return None
    return _typed(nic.network, nic.type) if nic.type else nic.network


def why_out_of_reach(nic: Nic, networks: Sequence[HostNetwork]) -> str | None:
    """Return why an interface cannot be plugged in, or None when it can."""
    need = network_need(nic)
    if need is None or need in network_offers(networks):
        return None
    types = next((each.types for each in networks if each.name == nic.network), None)
    if types is None:
        return f"network {nic.network} is not among its networks"
    return f"its network {nic.network} is of type {' or '.join(types)}, not {nic.type}"


def _typed(name: str, kind: str) -> str:
    """Return a network with its type, as people read it when no host has it."""
    return f"{name} of type {kind}"
