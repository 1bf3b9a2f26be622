"""Carries connections from a pod's namespace to the API server, byte by byte.

The API server listens on the machine's loopback only, which a pod does not have.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import cast

__all__ = ["Connect", "Relay"]

# Makes the far end of a connection; its protocol is given.
Connect = Callable[[Callable[[], asyncio.Protocol]], Awaitable[object]]


class Relay:
    """One listening socket, and the connections that came in by it."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._server: asyncio.Server | None = None
        self._ends: set[_End] = set()

    async def start(self, listening: socket.socket) -> None:
        """Accept whoever connects to the socket."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._accepted, sock=listening)

    def close(self) -> None:
        """Stop listening and hang up on everybody."""
        if self._server:
            self._server.close()
        for end in tuple(self._ends):
            end.close()

    def _accepted(self) -> "_End":
        near = _End(self._ends)
        near.dial = self._connect
        return near


class _End(asyncio.Protocol):
    """One end of a relayed connection."""

    dial: Connect | None = None

    def __init__(self, ends: "set[_End]") -> None:
        self._ends = ends
        self._other: _End | None = None
        self._transport: asyncio.Transport | None = None
        self._dialling: asyncio.Task[None] | None = None
        # What arrives before the far end stands.
        self._early: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._ends.add(self)
        if self.dial is not None:
            self._dialling = asyncio.create_task(self._reach(self.dial))

    async def _reach(self, connect: Connect) -> None:
        far = _End(self._ends)
        far._other = self
        try:
            await connect(lambda: far)
        except OSError:
            self.close()
            return
        if self._transport is None or far._transport is None:
            far.close()
            return
        self._other = far
        far._transport.writelines(self._early)
        self._early.clear()

    def data_received(self, data: bytes) -> None:
        if self._other and self._other._transport:
            self._other._transport.write(data)
        else:
            self._early.append(data)

    def pause_writing(self) -> None:
        if self._other and self._other._transport:
            self._other._transport.pause_reading()

    def resume_writing(self) -> None:
        if self._other and self._other._transport:
            self._other._transport.resume_reading()

    def connection_lost(self, _: Exception | None) -> None:
        self._transport = None
        self._ends.discard(self)
        if self._other:
            self._other.close()

    def close(self) -> None:
        if self._transport:
            self._transport.close()
