"""Where the API server asks a node for logs, as it asks a kubelet: ``kubectl logs`` ends here.

HTTPS for the API server alone. What else it may ask for is answered with what this node is not.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from novacron.localcluster.layout import API_SERVER_USER, NODE_NAME
from novacron.localcluster.node.log_reading import Wish

__all__ = ["Asked", "Endpoint", "LogRequest", "listening"]

log = logging.getLogger(__name__)

LONGEST_HEAD = 2**16
PATIENCE_SECONDS = 30.0


class LogRequest(NamedTuple):
    """Whose log is wanted, of which run, and what of it."""

    namespace: str
    pod: str
    container: str
    previous: bool
    wish: Wish


class Asked(Exception):
    """The question cannot be answered; the message says why, the code how badly."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


# Sends a log piece by piece through the function it is given; raises Asked before the first.
SendLog = Callable[[LogRequest, Callable[[bytes], Awaitable[None]]], Awaitable[None]]


def listening(address: str, port: int, device: str | None = None) -> socket.socket:
    """Return a socket that listens, if a device is named only for who comes by way of it."""
    listener = socket.socket()
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if device:
            name = device.encode() + b"\0"
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, name)
        listener.bind((address, port))
    except BaseException:
        listener.close()
        raise
    return listener


@dataclass(slots=True)
class Endpoint:
    """The server. ``healthy`` says whether the node does its work."""

    send_log: SendLog
    healthy: Callable[[], bool]
    _servers: list[asyncio.Server] = field(default_factory=list)

    async def listen(self, listener: socket.socket, tls: ssl.SSLContext) -> None:
        """Answer whoever connects to a socket."""
        server = await asyncio.start_server(self._serve, sock=listener, ssl=tls, limit=LONGEST_HEAD)
        self._servers.append(server)

    def close(self) -> None:
        """Stop listening."""
        for server in self._servers:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            await self._answer(head.decode(errors="replace"), reader, writer)
        except Asked as no:
            writer.write(_head(no.code) + f"{no}\n".encode())
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever asked is gone, or speaks something else
        finally:
            with suppress(OSError):
                writer.close()
                await writer.wait_closed()

    async def _answer(
        self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        method, target, _ = head.partition("\r\n")[0].split(" ")
        address = urlsplit(target)
        if address.path == "/healthz":
            code = 200 if self.healthy() else 503
            writer.write(_head(code) + (b"ok" if code == 200 else b"starting"))
            return
        if _caller(writer) != API_SERVER_USER:
            raise Asked(403, "only the API server may ask")
        parts = [unquote(part) for part in address.path.split("/")]
        if method != "GET" or len(parts) != 5 or parts[1] != "containerLogs":
            raise Asked(501, f"{parts[1]} is not supported by the development node {NODE_NAME}")
        query = dict(parse_qsl(address.query))
        request = LogRequest(parts[2], parts[3], parts[4], _yes(query, "previous"), _wish(query))
        began = False

        async def send(data: bytes) -> None:
            nonlocal began
            writer.write(data if began else _head(200) + data)
            began = True
            await writer.drain()

        sending = asyncio.ensure_future(self.send_log(request, send))
        # Who follows a quiet log and leaves would otherwise be served until the container ends.
        leaving = asyncio.ensure_future(reader.read())
        await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        for task in (sending, leaving):
            task.cancel()
        with suppress(asyncio.CancelledError):
            await sending


def _caller(writer: asyncio.StreamWriter) -> str | None:
    certificate = writer.get_extra_info("peercert") or {}
    subject = {name: value for part in certificate.get("subject", ()) for name, value in part}
    return subject.get("commonName")


def _wish(query: dict[str, str]) -> Wish:
    since = query.get("sinceTime", "")
    if seconds := query.get("sinceSeconds"):
        since = (datetime.now(UTC) - timedelta(seconds=int(seconds))).isoformat()
    return Wish(
        follow=_yes(query, "follow"),
        tail=int(query["tailLines"]) if "tailLines" in query else None,
        since=since.replace("+00:00", "Z"),
        timestamps=_yes(query, "timestamps"),
        limit=int(query["limitBytes"]) if "limitBytes" in query else None,
    )


def _yes(query: dict[str, str], name: str) -> bool:
    return query.get(name, "").lower() in ("true", "1")


def _head(code: int) -> bytes:
    # No length: the end of the connection is the end of the log.
    return (
        f"HTTP/1.1 {code} {HTTPStatus(code).phrase}\r\n"
        "Content-Type: text/plain\r\nConnection: close\r\n\r\n"
    ).encode()
