"""Carries viewers' connections to a screen. It knows neither machines nor clusters."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress

from novacron.cli.terminal import signalled

__all__ = ["relay"]

CHUNK = 64 * 1024

Connect = Callable[[], Awaitable[socket.socket]]
Tell = Callable[[str], None]


async def relay(
    address: str, port: int, connect: Connect, *, listening: Callable[[int], None], trouble: Tell
) -> None:
    """Listen until a signal ends us; every connection gets one of its own."""

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _carry(reader, writer, connect)
        except Exception as error:  # noqa: BLE001 - one viewer's trouble is not another's
            trouble(str(error))
        finally:
            writer.close()

    with signalled() as signal:
        server = await asyncio.start_server(carry, address, port)
        listening(server.sockets[0].getsockname()[1])
        await signal
        # Whoever still looks is cut off: only then does a server count as closed.
        server.close()


async def _carry(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connect: Connect
) -> None:
    there, away = await asyncio.open_connection(sock=await connect())
    try:
        ways = (asyncio.create_task(_pump(reader, away)), asyncio.create_task(_pump(there, writer)))
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
    finally:
        away.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
