"""Which addresses images may be fetched from.

A tenant names an address and this process connects to it, from a network that a tenant may have
no way into. So nothing but public addresses is reached unless a setting allows it, and never
where clouds tell machines their secrets. The address that was looked at is the one that is
connected to: a name may say something else when it is asked a second time.
"""

import ipaddress
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from novacron.core.errors import Rejected

__all__ = ["Reach"]

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolve = Callable[[str, int], Sequence[str]]

# Where clouds keep credentials of the machine that asks, what leads nowhere but here, and what was
# once another way to write addresses of IPv4.
NEVER = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",
        "169.254.0.0/16",
        "100.100.100.200/32",
        "168.63.129.16/32",
        "224.0.0.0/3",
        "::/96",
        "fe80::/10",
        "fd00:ec2::254/128",
        "fd20:ce::254/128",
        "ff00::/8",
    )
)
LOOPBACK = ipaddress.ip_address("::1")
# Private once; nobody has it for a public one.
SITE_LOCAL = (ipaddress.ip_network("fec0::/10"),)
NAT64 = ipaddress.ip_network("64:ff9b::/96")


def resolved(host: str, port: int) -> list[str]:
    """Return the addresses of a name."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


@dataclass(frozen=True, slots=True)
class Reach:
    """Says which addresses may be connected to.

    ``allow`` and ``deny`` are addresses, networks or host names; what is denied is denied
    whatever else is allowed.
    """

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    resolve: Resolve = resolved

    def addresses(self, host: str, port: int, *, trusted: bool = False) -> list[str]:
        """Return where to connect to for a host; raise Rejected where that is not allowed.

        A host that an administrator named is trusted: it may be anywhere but where nobody may.
        """
        plain = host.strip("[]").rstrip(".").lower()
        if self._names(self.deny, plain):
            raise _refusal(host, "is denied by --image-deny")
        found = [_address(text) for text in self.resolve(plain, port)]
        trusted = trusted or self._names(self.allow, plain)
        for address in found:
            why = self._objection(_real(address), trusted=trusted)
            if why:
                raise _refusal(host, why)
        return [str(address) for address in found]

    def _objection(self, address: Address, *, trusted: bool) -> str | None:
        if address != LOOPBACK and _within(address, NEVER):
            return "is an address that images are never fetched from"
        if _within(address, _networks(self.deny)):
            return "is denied by --image-deny"
        public = address.is_global and not _within(address, SITE_LOCAL)
        if trusted or public or _within(address, _networks(self.allow)):
            return None
        return (
            "is not a public address; an administrator can allow it with --image-allow of the "
            "operator"
        )

    @staticmethod
    def _names(entries: tuple[str, ...], host: str) -> bool:
        return host in (entry.lower() for entry in entries)


def _refusal(host: str, why: str) -> Rejected:
    return Rejected(f"images cannot be fetched from {host}: it {why}", reason="AddressDenied")


def _address(text: str) -> Address:
    return ipaddress.ip_address(text.partition("%")[0])


def _real(address: Address) -> Address:
    """Return the address that is reached in the end by one that carries another."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    inner = address.ipv4_mapped or address.sixtofour
    if inner is None and address.teredo is not None:
        inner = address.teredo[1]
    return inner or address


def _networks(entries: tuple[str, ...]) -> tuple[Network, ...]:
    found: list[Network] = []
    for entry in entries:
        try:
            found.append(ipaddress.ip_network(entry, strict=False))
        except ValueError:
            continue  # a name
    return tuple(found)


def _within(address: Address, networks: Sequence[Network]) -> bool:
    return any(address.version == each.version and address in each for each in networks)
