"""The addresses of a guest: what its network leased to it, what it was told, what its agent says.

Blocks.
"""

from collections.abc import Iterable
from ipaddress import ip_address
from typing import Any

import libvirt

from novacron.drivers.libvirt.defined import Defined

__all__ = ["addresses_of"]

AGENT_SECONDS = 1
LEASE = libvirt.VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_LEASE
AGENT = libvirt.VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_AGENT


def addresses_of(handle: libvirt.virDomain, running: Defined) -> dict[str, tuple[str, ...]]:
    """Return the addresses of each interface of a running guest, in their order.

    Its agent, which takes a while, is asked only about interfaces that nobody else knows of.
    """
    known = {each.mac: running.mark.told_of(each.mac).addresses for each in running.plugged}
    if any(each.port.kind == "network" for each in running.plugged):
        leases = _asked(handle, LEASE)
        known = {mac: leases.get(mac) or static for mac, static in known.items()}
    if running.agent and not all(known.values()):
        said = _asked(handle, AGENT)
        known = {mac: found or said.get(mac, ()) for mac, found in known.items()}
    return known


def _asked(handle: libvirt.virDomain, source: int) -> dict[str, tuple[str, ...]]:
    try:
        if source == AGENT:
            # An agent that was frozen or killed must not hold up a look for longer.
            handle.agentSetResponseTimeout(AGENT_SECONDS)
        interfaces: dict[str, Any] = handle.interfaceAddresses(source)
    except libvirt.libvirtError:
        return {}  # no network of libvirt's, no agent yet: there is nothing to know then
    found: dict[str, tuple[str, ...]] = {}
    for entry in interfaces.values():
        mac = entry["hwaddr"] or ""
        found[mac] = (*found.get(mac, ()), *_useful(entry["addrs"] or ()))
    return found


def _useful(entries: Iterable[dict[str, Any]]) -> list[str]:
    found = [ip_address(entry["addr"]) for entry in entries]
    kept = [each for each in found if not (each.is_loopback or each.is_link_local)]
    return [str(each) for each in sorted(kept, key=lambda each: (each.version, int(each)))]
