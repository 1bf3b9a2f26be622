"""Addresses to listen on, and the failures of listening, each in one sentence.

Knows nothing about what is served there.
"""

import errno
import ssl
from dataclasses import dataclass
from typing import Self

from novacron.runtime.http_server import HttpServer

__all__ = ["BadBindAddress", "Bind", "CannotListen", "PortTaken"]


class BadBindAddress(ValueError):
    """The text is no address; the message names the flag it was given with."""


class CannotListen(Exception):
    """The address may not be used; the message says why."""


class PortTaken(CannotListen):
    """Somebody else listens there already."""


@dataclass(frozen=True, slots=True)
class Bind:
    """Where to listen, what for, and the flag that changes it. No host means every interface."""

    host: str
    port: int
    purpose: str
    flag: str

    @classmethod
    def parse(cls, text: str, *, purpose: str, flag: str) -> Self | None:
        """Read ``:8080``, ``127.0.0.1:8080`` or ``[::1]:8080``; ``0`` and nothing mean off."""
        if text in ("", "0"):
            return None
        host, colon, port = text.rpartition(":")
        bracketed = host.startswith("[") and host.endswith("]")
        if not colon or not _is_port(port) or (":" in host and not bracketed):
            raise BadBindAddress(
                f"{flag}={text} is not an address to listen on: "
                "give host:port, :port, or 0 to switch it off"
            )
        return cls(host[1:-1] if bracketed else host, int(port), purpose, flag)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    async def listen(self, server: HttpServer, tls: ssl.SSLContext | None = None) -> int:
        """Let a server listen on this address and return its port."""
        try:
            return await server.listen(self.host or None, self.port, tls)
        except OSError as error:
            raise self._failure(error) from error

    def _failure(self, error: OSError) -> CannotListen:
        intent = f"cannot listen on {self} for {self.purpose}"
        if error.errno == errno.EADDRINUSE:
            return PortTaken(f"{intent}: already in use; choose another with {self.flag}")
        return CannotListen(f"{intent}: {_why(error)}; choose another with {self.flag}")


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and int(text) < 2**16


def _why(error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        return "not permitted"
    if error.errno == errno.EADDRNOTAVAIL:
        return "no such address on this machine"
    return (error.strerror or str(error)).lower()
