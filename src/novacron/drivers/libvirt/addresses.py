"""The addresses of a guest: what its network leased to it, or else what its agent says. Blocks."""

from collections.abc import Iterable
from ipaddress import ip_address
from typing import Any

import libvirt

from novacron.drivers.libvirt.domain import Defined

__all__ = ["addresses_of"]

AGENT_SECONDS = 1
LEASE = libvirt.VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_LEASE
AGENT = libvirt.VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_AGENT


def addresses_of(handle: libvirt.virDomain, running: Defined) -> tuple[str, ...]:
    """Return the addresses of a running guest, in the order of its interfaces."""
    if not running.macs:
        return ()
    return _asked(handle, LEASE, running) or (
        _asked(handle, AGENT, running) if running.agent else ()
    )


def _asked(handle: libvirt.virDomain, source: int, running: Defined) -> tuple[str, ...]:
    try:
        if source == AGENT:
            # An agent that was frozen or killed must not hold up a look for longer.
            handle.agentSetResponseTimeout(AGENT_SECONDS)
        interfaces: dict[str, Any] = handle.interfaceAddresses(source)
    except libvirt.libvirtError:
        return ()  # no network of libvirt's, no agent yet: there is nothing to know then
    by_mac = {entry["hwaddr"]: entry["addrs"] or () for entry in interfaces.values()}
    return tuple(address for mac in running.macs for address in _useful(by_mac.get(mac, ())))


def _useful(entries: Iterable[dict[str, Any]]) -> list[str]:
    found = [ip_address(entry["addr"]) for entry in entries]
    kept = [each for each in found if not (each.is_loopback or each.is_link_local)]
    return [str(each) for each in sorted(kept, key=lambda each: (each.version, int(each)))]
