"""Whether an address answers an echo request: what ``ping`` does, for machines that have none."""

import os
import socket
import struct
import time

__all__ = ["answers"]

ECHO_REQUEST = 8


def answers(address: str, seconds: float) -> bool:
    """Ask until there is an answer or time is up; needs root."""
    end = time.monotonic() + seconds
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as asking:
        asking.settimeout(0.5)
        while time.monotonic() < end:
            try:
                asking.sendto(_request(), (address, 0))
                _, (source, _) = asking.recvfrom(1500)
            except OSError:
                continue
            if source == address:
                return True
    return False


def _request() -> bytes:
    number = os.getpid() & 0xFFFF
    checksum = 0xFFFF - (ECHO_REQUEST * 256 + number + 1) % 0xFFFF
    return struct.pack("!BBHHH", ECHO_REQUEST, 0, checksum, number, 1)
