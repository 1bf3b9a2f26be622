"""The addresses of a guest: what its network leased to it, what it was told, what its agent says.

Blocks.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address
from itertools import chain, islice
from typing import Any

import libvirt

from novacron.drivers.libvirt.defined import Defined
from novacron.drivers.libvirt.hearing import Hearing

__all__ = ["addresses_of", "told"]

AGENT_SECONDS = 1
# A guest may say that it has any number, and all that is told is written into its status.
MOST_ADDRESSES = 64
MOST_INTERFACES = 1024
# What a guest says is its own affair, and libvirt hands it on as it is.
MALFORMED = (ValueError, TypeError, KeyError, AttributeError)
LEASE = libvirt.VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_LEASE
AGENT = libvirt.VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_AGENT


def addresses_of(
    handle: libvirt.virDomain, running: Defined, hearing: Hearing | None = None
) -> dict[str, tuple[str, ...]]:
    """Return the addresses of each interface of a running guest, in their order.

    Its agent, which takes a while, is asked only about interfaces that nobody else knows of, and
    not where ``hearing`` many takes too long already.
    """
    known = {each.mac: running.mark.told_of(each.mac).addresses for each in running.plugged}
    if any(each.port.kind == "network" for each in running.plugged):
        leases = _asked(handle, LEASE)
        known = {mac: leases.get(mac) or static for mac, static in known.items()}
    if running.agent and not all(known.values()):
        ask = partial(_asked, handle, AGENT)
        said = hearing.said(running.mark.uid, ask) if hearing else ask()
        known = {mac: found or said.get(mac, ()) for mac, found in known.items()}
    return known


def told(addresses: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Return what is told of all interfaces of a guest: each address once, and not too many."""
    found = dict.fromkeys(chain.from_iterable(addresses.values()))
    return tuple(islice(found, MOST_ADDRESSES))


def _asked(handle: libvirt.virDomain, source: int) -> dict[str, tuple[str, ...]]:
    try:
        if source == AGENT:
            # An agent that was frozen or killed must not hold up a look for longer.
            handle.agentSetResponseTimeout(AGENT_SECONDS)
        return _by_mac(handle.interfaceAddresses(source))
    except (libvirt.libvirtError, *MALFORMED):
        return {}  # no network of libvirt's, no agent yet: there is nothing to know then


def _by_mac(interfaces: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for entry in islice(interfaces.values(), MOST_INTERFACES):
        mac = entry["hwaddr"] or ""
        both = (*found.get(mac, ()), *_useful(entry["addrs"] or ()))
        found[mac] = both[:MOST_ADDRESSES]
    return found


def _useful(entries: Iterable[Mapping[str, Any]]) -> list[str]:
    found: list[IPv4Address | IPv6Address] = []
    for entry in islice(entries, MOST_ADDRESSES):
        with suppress(*MALFORMED):
            found.append(ip_address(entry["addr"]))
    kept = [each for each in found if _is_of_use(each)]
    return [str(each) for each in sorted(kept, key=lambda each: (each.version, int(each)))]


def _is_of_use(address: IPv4Address | IPv6Address) -> bool:
    """Say whether an address leads to the guest; what follows a % in one is of any length."""
    within = address.is_loopback or address.is_link_local
    return not within and getattr(address, "scope_id", None) is None
