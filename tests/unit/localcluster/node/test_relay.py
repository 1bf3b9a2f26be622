"""Bytes go both ways unchanged, however slowly either end reads, and both ends close together."""

import asyncio
import socket

from novacron.localcluster.node.relay import Relay

MUCH = bytes(range(256)) * 40_000


async def _relayed(handle):
    """Return a relay to a server with this handler, and the address of the relay."""
    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    far = server.sockets[0].getsockname()
    loop = asyncio.get_running_loop()
    relay = Relay(lambda protocol: loop.create_connection(protocol, *far))
    listening = socket.create_server(("127.0.0.1", 0))
    await relay.start(listening)
    return relay, server, listening.getsockname()


async def _part(writer, relay, server):
    writer.close()
    await writer.wait_closed()
    relay.close()
    server.close()
    await asyncio.sleep(0.05)  # sockets are closed one turn of the loop later


async def test_much_data_arrives_whole_in_both_directions():
    """More than any buffer holds, echoed by a server that takes its time."""

    async def echo(reader, writer):
        while data := await reader.read(50_000):
            writer.write(data)
            await writer.drain()
        writer.close()

    relay, server, address = await _relayed(echo)
    reader, writer = await asyncio.open_connection(*address)

    async def send():
        writer.write(MUCH)
        await writer.drain()

    sending = asyncio.create_task(send())
    await asyncio.sleep(0.2)  # let everything fill up before anybody reads
    assert await reader.readexactly(len(MUCH)) == MUCH
    await sending
    await _part(writer, relay, server)


async def test_an_end_that_closes_closes_the_other():
    """A client must notice that the API server went away."""

    async def greet(_, writer):
        writer.write(b"hello")
        writer.close()

    relay, server, address = await _relayed(greet)
    reader, writer = await asyncio.open_connection(*address)
    assert await asyncio.wait_for(reader.read(), 5) == b"hello"
    await _part(writer, relay, server)


async def test_nobody_at_the_far_end_is_a_closed_connection():
    """The API server may be away for a moment; who calls then calls again."""
    relay, server, address = await _relayed(lambda *_: None)
    server.close()
    reader, writer = await asyncio.open_connection(*address)
    assert await asyncio.wait_for(reader.read(), 5) == b""
    await _part(writer, relay, server)


async def test_closing_hangs_up_on_everybody():
    """When a pod goes, nothing of it may stay connected."""
    connected = asyncio.Event()

    async def hold(reader, writer):
        connected.set()
        await reader.read()
        writer.close()

    relay, server, address = await _relayed(hold)
    reader, writer = await asyncio.open_connection(*address)
    await connected.wait()
    relay.close()
    assert await asyncio.wait_for(reader.read(), 5) == b""
    await _part(writer, relay, server)
