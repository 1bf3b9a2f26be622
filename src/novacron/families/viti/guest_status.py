"""What is known of a machine's guest, in upstream's words of a Machine's status."""

from collections.abc import Iterable
from ipaddress import ip_address
from typing import Any

from novacron.core.guest_facts import GuestFacts, SeenNic
from novacron.core.machine import Observed
from novacron.families.wording import written_time

__all__ = ["addresses_in_words", "guest_status", "nics_seen"]

Object = dict[str, Any]


def guest_status(seen: Observed) -> Object:
    """Return what a status says of the guest; what is not known is None.

    Of one that is on its way up or down it says nothing: each word would be a write of its own.
    """
    guest = (seen.guest if seen.changing is None else None) or GuestFacts()
    return {
        "state": guest.state or None,
        "hostname": guest.hostname or None,
        "architecture": guest.architecture or None,
        "operatingSystem": guest.system or None,
        "operatingSystemVersion": guest.system_version or None,
        "kernelVersion": guest.kernel or None,
        "creationTime": written_time(guest.created),
        "bootTime": written_time(guest.started),
        "ipv6Addresses": [each for each in seen.addresses if ":" in each] or None,
        "publicIPAddresses": [each for each in seen.addresses if not _is_private(each)] or None,
        "privateIPAddresses": [each for each in seen.addresses if _is_private(each)] or None,
    }


def nics_seen(seen: Observed) -> tuple[SeenNic, ...]:
    """Return the interfaces that the guest has by now."""
    return seen.guest.nics if seen.guest and seen.changing is None else ()


def addresses_in_words(addresses: Iterable[str]) -> Object:
    """Return the addresses of one interface as a status has them."""
    found = list(addresses)
    return {
        "ipAddresses": [each for each in found if ":" not in each] or None,
        "ipv6Addresses": [each for each in found if ":" in each] or None,
    }


def _is_private(address: str) -> bool:
    try:
        return ip_address(address.partition("/")[0]).is_private
    except ValueError:
        return True
