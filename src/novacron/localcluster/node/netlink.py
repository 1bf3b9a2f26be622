"""Links and addresses, asked of the kernel directly: no system package is needed for them.

Everything happens in the network namespace of the calling thread. Standard library only.
"""

import ipaddress
import os
import socket
import struct
from collections.abc import Iterable
from contextlib import suppress

__all__ = ["add_address", "add_bridge", "add_veth", "delete_link", "has_link", "join", "set_up"]

NETLINK_ROUTE = 0
RTM_NEWLINK, RTM_DELLINK, RTM_NEWADDR = 16, 17, 20
REQUEST, ACK, EXCLUSIVE, CREATE = 0x1, 0x4, 0x200, 0x400
NLMSG_ERROR = 2
IFF_UP = 1
IFLA_IFNAME, IFLA_MASTER, IFLA_LINKINFO, IFLA_NET_NS_FD = 3, 10, 18, 28
INFO_KIND, INFO_DATA, VETH_PEER = 1, 2, 1
IFA_ADDRESS, IFA_LOCAL = 1, 2
HEADER = struct.Struct("=IHHII")
LINK = struct.Struct("=BxHiII")
ADDRESS = struct.Struct("=BBBBI")

Attribute = tuple[int, bytes]


def has_link(name: str) -> bool:
    """Say whether there is a link of this name."""
    with suppress(OSError):
        return socket.if_nametoindex(name) > 0
    return False


def add_bridge(name: str) -> None:
    """Make a bridge and switch it on."""
    info = _attributes([(INFO_KIND, b"bridge")])
    _send(
        RTM_NEWLINK,
        CREATE | EXCLUSIVE,
        _link(up=True),
        [(IFLA_IFNAME, _text(name)), (IFLA_LINKINFO, info)],
    )


def add_veth(name: str, peer: str, namespace: int, bridge: str) -> None:
    """Make a cable: one end on the bridge, the other, still off, in this namespace."""
    far = _link() + _attributes(
        [(IFLA_IFNAME, _text(peer)), (IFLA_NET_NS_FD, struct.pack("=I", namespace))]
    )
    data = _attributes([(VETH_PEER, far)])
    info = _attributes([(INFO_KIND, b"veth"), (INFO_DATA, data)])
    master = struct.pack("=I", socket.if_nametoindex(bridge))
    attributes = [(IFLA_IFNAME, _text(name)), (IFLA_MASTER, master), (IFLA_LINKINFO, info)]
    _send(RTM_NEWLINK, CREATE | EXCLUSIVE, _link(), attributes)
    # An end cannot be switched on before the other exists.
    set_up(name)


def join(name: str, bridge: str) -> None:
    """Put a link on a bridge, where it may be already."""
    master = struct.pack("=I", socket.if_nametoindex(bridge))
    _send(RTM_NEWLINK, 0, _link(socket.if_nametoindex(name)), [(IFLA_MASTER, master)])


def set_up(name: str) -> None:
    """Switch a link on."""
    _send(RTM_NEWLINK, 0, _link(socket.if_nametoindex(name), up=True), [])


def add_address(name: str, address: ipaddress.IPv4Interface) -> None:
    """Give a link an address, with a route to its network."""
    body = ADDRESS.pack(
        socket.AF_INET, address.network.prefixlen, 0, 0, socket.if_nametoindex(name)
    )
    packed = address.ip.packed
    _send(RTM_NEWADDR, CREATE | EXCLUSIVE, body, [(IFA_LOCAL, packed), (IFA_ADDRESS, packed)])


def delete_link(name: str) -> bool:
    """Remove a link, and the other end of a cable with it; say whether there was one."""
    try:
        _send(RTM_DELLINK, 0, _link(), [(IFLA_IFNAME, _text(name))])
    except OSError:
        if has_link(name):
            raise
        return False
    return True


def _link(index: int = 0, *, up: bool = False) -> bytes:
    flags = IFF_UP if up else 0
    return LINK.pack(socket.AF_UNSPEC, 0, index, flags, flags)


def _text(name: str) -> bytes:
    return name.encode() + b"\0"


def _attributes(attributes: Iterable[Attribute]) -> bytes:
    packed = b""
    for kind, value in attributes:
        size = 4 + len(value)
        packed += struct.pack("=HH", size, kind) + value + b"\0" * (-size % 4)
    return packed


def _send(kind: int, flags: int, body: bytes, attributes: Iterable[Attribute]) -> None:
    payload = body + _attributes(attributes)
    header = HEADER.pack(HEADER.size + len(payload), kind, REQUEST | ACK | flags, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_ROUTE) as kernel:
        kernel.bind((0, 0))
        kernel.send(header + payload)
        answer = kernel.recv(65536)
    answered = HEADER.unpack_from(answer)[1]
    code = struct.unpack_from("=i", answer, HEADER.size)[0] if answered == NLMSG_ERROR else 0
    if code:
        raise OSError(-code, os.strerror(-code))
