"""The little of HTTP and WebSocket that virt-api speaks to a virt-handler."""

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from http import HTTPStatus

__all__ = ["Request", "answer", "frames", "read_request", "send", "upgrade"]

LONGEST_HEAD = 2**16
LONGEST_BODY = 2**20
MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
PROTOCOL = "plain.kubevirt.io"
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
FINAL = 0x80
MASKED = 0x80


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for; bodies are read and of no interest."""

    method: str
    path: str
    headers: dict[str, str]


async def read_request(reader: asyncio.StreamReader) -> Request:
    """Read one request; ValueError when it is none."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    method, target, _ = first.split(" ")
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    length = int(headers.get("content-length") or 0)
    if length > LONGEST_BODY:
        raise ValueError("the body is too long")
    await reader.readexactly(length)
    return Request(method, target.partition("?")[0], headers)


async def answer(writer: asyncio.StreamWriter, status: int, text: str) -> None:
    """Answer with a few words, and have the connection closed."""
    body = text.encode()
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: text/plain\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    writer.write(head.encode() + body)
    await writer.drain()


async def upgrade(writer: asyncio.StreamWriter, request: Request) -> None:
    """Accept a WebSocket."""
    key = request.headers["sec-websocket-key"].encode()
    accepted = base64.b64encode(hashlib.sha1(key + MAGIC, usedforsecurity=False).digest()).decode()
    offered = request.headers.get("sec-websocket-protocol", "")
    protocol = f"Sec-WebSocket-Protocol: {PROTOCOL}\r\n" if PROTOCOL in offered else ""
    writer.write(
        (
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"{protocol}Sec-WebSocket-Accept: {accepted}\r\n\r\n"
        ).encode()
    )
    await writer.drain()


async def send(writer: asyncio.StreamWriter, data: bytes, kind: int = BINARY) -> None:
    """Send one message."""
    size = len(data)
    if size < 126:
        head = bytes((FINAL | kind, size))
    else:
        head = bytes((FINAL | kind, 126)) + size.to_bytes(2, "big")
    writer.write(head + data)
    await writer.drain()


async def frames(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> AsyncIterator[bytes]:
    """Return what the other side sends, until it closes."""
    while True:
        first, second = await reader.readexactly(2)
        size = second & ~MASKED
        if size == 126:
            size = int.from_bytes(await reader.readexactly(2), "big")
        elif size == 127:
            size = int.from_bytes(await reader.readexactly(8), "big")
        if size > LONGEST_BODY:
            return
        mask = await reader.readexactly(4) if second & MASKED else bytes(4)
        data = await reader.readexactly(size)
        plain = bytes(byte ^ mask[place % 4] for place, byte in enumerate(data))
        kind = first & 0x0F
        if kind == CLOSE:
            await send(writer, plain[:2], CLOSE)
            return
        if kind == PING:
            await send(writer, plain, PONG)
        elif kind != PONG:
            yield plain
