"""Requests to machines that hooks ask for, each in a task of its own.

A tenant says where to, and it is this process that connects: to the machine's own addresses or to
the host it named, but never to this machine, to where clouds tell machines their secrets, or to
anything that no network leads to. Nothing of an answer but its status is read.
"""

import asyncio
import contextlib
import ipaddress
import socket
import ssl
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from novacron.core.errors import Busy
from novacron.core.hooks import PRE_START, PRE_STOP, TIMED_OUT, HttpRequest, Ran

__all__ = ["NO_ADDRESS", "Requests", "is_out_of_bounds"]

NO_ADDRESS = "NoAddress"

TRY_AGAIN_SECONDS = 1.0
ONE_TRY = timedelta(seconds=10)
NOT_ALLOWED = 126
UNANSWERED = 1
METADATA = frozenset({"100.100.100.200", "168.63.129.16", "fd00:ec2::254", "fd20:ce::254"})

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


def is_out_of_bounds(address: IpAddress) -> bool:
    """Say whether nobody is to be asked at an address."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    real = mapped or address
    unreachable = real.is_loopback or real.is_link_local or real.is_multicast or real.is_unspecified
    return unreachable or real.is_reserved or str(real) in METADATA


class _Refused(Exception):
    """It is not sent, and never will be."""


@dataclass(slots=True)
class Requests:
    """Sends requests and remembers those under way; after a restart of ours they are sent anew."""

    out_of_bounds: Callable[[IpAddress], bool] = is_out_of_bounds
    _tasks: dict[tuple[str, str, str], "asyncio.Task[Ran]"] = field(default_factory=dict)

    def sent(
        self, uid: str, name: str, request: HttpRequest, addresses: Sequence[str]
    ) -> Ran | None:
        """Send a request unless it is under way; return how it ended once it has.

        Busy with reason NoAddress means that the machine cannot be asked yet; its time has not
        begun then.
        """
        key = (uid, name, request.digest)
        task = self._tasks.get(key)
        if task is None:
            if request.host is None and not addresses:
                raise Busy("the machine has no address yet", reason=NO_ADDRESS)
            target = request.host or addresses[0]
            task = asyncio.create_task(self._send(name, request, target))
            self._tasks[key] = task
            return None
        if not task.done():
            return None
        del self._tasks[key]
        return task.result()

    def forget(self, uid: str, names: Collection[str] = (PRE_START, PRE_STOP)) -> None:
        """Forget requests of a machine that is gone, or that is to be asked them anew."""
        for key in [key for key in self._tasks if key[0] == uid and key[1] in names]:
            self._tasks.pop(key).cancel()

    async def _send(self, name: str, request: HttpRequest, target: str) -> Ran:
        """Ask until somebody answers well, if there is time; before a stop, ask once."""
        code, note = TIMED_OUT, ""
        try:
            async with asyncio.timeout(request.timeout.total_seconds()):
                note = await self._trouble(request, target)
                while note and name == PRE_START:
                    await asyncio.sleep(TRY_AGAIN_SECONDS)
                    note = await self._trouble(request, target)
                code = UNANSWERED if note else 0
        except TimeoutError:
            pass
        except _Refused as error:
            code, note = NOT_ALLOWED, str(error)
        return Ran(name, request.digest, code, note)

    async def _trouble(self, request: HttpRequest, target: str) -> str:
        """Ask once; return what was wrong with the answer, or nothing."""
        port = _port(request)
        try:
            async with asyncio.timeout(min(request.timeout, ONE_TRY).total_seconds()):
                address = await self._allowed(target, port)
                status = await _status(request, target, address, port)
        except (OSError, TimeoutError, ValueError, EOFError, asyncio.LimitOverrunError):
            return f"nobody answers on port {port}"
        return "" if 200 <= status < 400 else f"it was answered with status {status}"

    async def _allowed(self, target: str, port: int) -> str:
        """Return the address that was looked at, whatever a name says next."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(target, port, type=socket.SOCK_STREAM)
        address = str(found[0][4][0])
        if self.out_of_bounds(ipaddress.ip_address(address.partition("%")[0])):
            raise _Refused(f"{target} is no address that requests may go to")
        return address


def _port(request: HttpRequest) -> int:
    if isinstance(request.port, int):
        return request.port
    try:
        return socket.getservbyname(request.port, "tcp")
    except OSError as error:
        raise _Refused(f"no port is called {request.port}; write its number") from error


async def _status(request: HttpRequest, target: str, address: str, port: int) -> int:
    """Send the request and return the status of the answer."""
    message = _written(request, target, port)
    context = _unchecked() if request.encrypted else None
    name = target if context else None
    reader, writer = await asyncio.open_connection(address, port, ssl=context, server_hostname=name)
    try:
        writer.write(message)
        await writer.drain()
        words = (await reader.readuntil(b"\n")).split()
        return int(words[1]) if len(words) > 1 else 0
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def _unchecked() -> ssl.SSLContext:
    """As a kubelet does: a machine's certificate is its own, and nothing secret is sent."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _written(request: HttpRequest, target: str, port: int) -> bytes:
    host = f"[{target}]" if ":" in target else target
    headers = {"host": ("Host", f"{host}:{port}"), "connection": ("Connection", "close")}
    headers |= {name.lower(): (name, value) for name, value in request.headers}
    lines = [
        f"GET {request.path} HTTP/1.1",
        *(f"{name}: {value}" for name, value in headers.values()),
    ]
    if any(not line.isprintable() for line in lines) or " " in request.path:
        # It would be another request than the one that was written down.
        raise _Refused("its path or a header has characters that no request may have")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()
