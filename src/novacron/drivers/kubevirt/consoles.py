"""Consoles and screens of machines in a KubeVirt cluster, over the websockets of its API.

Whoever looks does so with their own rights: nothing is followed here, only one stream opened.
"""

import asyncio
import json
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from novacron.core.driver import ConsoleStream, Display, Said
from novacron.core.errors import DriverError, Rejected, Unreachable, Unsupported
from novacron.core.machine import MachineRef
from novacron.drivers.kubevirt.cluster import Cluster
from novacron.runtime.resource import Resource

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection
    from websockets.http11 import Response

__all__ = ["Consoles"]

STREAMS = Resource(
    "subresources.kubevirt.io", "v1", "virtualmachineinstances", "VirtualMachineInstance"
)
# What KubeVirt calls a stream of plain bytes.
PLAIN = "plain.kubevirt.io"
PATIENCE_SECONDS = 15.0
CHUNK = 64 * 1024
NOT_RUNNING = frozenset({404, 409})


@dataclass(frozen=True, slots=True)
class _Stream:
    """Satisfies ``core.driver.ConsoleStream``."""

    websocket: "ClientConnection"

    async def read(self) -> bytes:
        """Return what the guest said next; nothing once the console has ended."""
        from websockets.exceptions import ConnectionClosed  # noqa: PLC0415 - see _opened

        with suppress(ConnectionClosed):
            while True:
                data = await self.websocket.recv()
                if data:
                    return data.encode() if isinstance(data, str) else data
        return b""

    async def write(self, data: bytes) -> None:
        """Type something."""
        from websockets.exceptions import ConnectionClosed  # noqa: PLC0415

        with suppress(ConnectionClosed):
            await self.websocket.send(data)

    async def close(self) -> None:
        """Hang up."""
        await self.websocket.close()


class Consoles:
    """Satisfies ``core.driver.Console``."""

    __slots__ = ()
    cluster: Cluster

    async def console(self, ref: MachineRef) -> ConsoleStream:
        """Open the console of a running machine."""
        return _Stream(await self._opened(ref, "console"))

    async def console_log(self, ref: MachineRef, since: int = 0) -> Said:
        """Tell where the log is: KubeVirt keeps it with the machine's pod, if at all."""
        if since < 0:
            return Said(b"", 0)
        raise Unsupported(
            "KubeVirt keeps what a machine said on its console in a log of its pod: "
            f"kubectl logs -n {ref.namespace} -l vm.kubevirt.io/name={ref.name} "
            "-c guest-console-log"
        )

    async def display(self, ref: MachineRef) -> Display:
        """Tell where the machine's screen is: nowhere but behind the cluster's API."""
        del ref
        return Display("", 0)

    async def open_display(self, ref: MachineRef) -> socket.socket:
        """Connect to the machine's screen."""
        stream = _Stream(await self._opened(ref, "vnc"))
        ours, theirs = socket.socketpair()
        task = asyncio.create_task(_carried(stream, ours), name=f"screen of {ref.name}")
        _CARRYING.add(task)
        task.add_done_callback(_CARRYING.discard)
        return theirs

    async def _opened(self, ref: MachineRef, what: str) -> "ClientConnection":
        # Loaded when somebody looks: an operator never needs it.
        from websockets.asyncio.client import connect  # noqa: PLC0415
        from websockets.exceptions import InvalidHandshake, InvalidStatus  # noqa: PLC0415
        from websockets.typing import Subprotocol  # noqa: PLC0415

        async with self.cluster.connect() as client:
            to = client.connection
        authorization = await to.credentials.header()
        url = "ws" + to.server.removeprefix("http") + STREAMS.path(ref.namespace, ref.name, what)
        named: dict[str, Any] = {}
        if to.tls is not None and to.server_name:
            named["server_hostname"] = to.server_name
        try:
            return await connect(
                url,
                ssl=to.tls,
                additional_headers={"Authorization": authorization} if authorization else None,
                subprotocols=[Subprotocol(PLAIN)],
                compression=None,
                max_size=None,
                open_timeout=PATIENCE_SECONDS,
                proxy=None,
                **named,
            )
        except InvalidStatus as error:
            raise _refusal(error.response, what) from error
        except (OSError, TimeoutError, InvalidHandshake) as error:
            raise Unreachable(f"the cluster opens no {what}: {error or 'no answer'}") from error


# Tasks that nobody else holds would be collected while they work.
_CARRYING: set["asyncio.Task[None]"] = set()


async def _carried(stream: _Stream, end: socket.socket) -> None:
    """Carry bytes between a screen and whoever looks, until either ends."""
    reader, writer = await asyncio.open_connection(sock=end)

    async def there() -> None:
        while data := await reader.read(CHUNK):
            await stream.write(data)

    async def back() -> None:
        while data := await stream.read():
            writer.write(data)
            await writer.drain()

    ways = {asyncio.create_task(there()), asyncio.create_task(back())}
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await stream.close()
        writer.close()


def _refusal(response: "Response", what: str) -> DriverError:
    """Return what KubeVirt said in place of opening a stream."""
    text = bytes(response.body or b"").decode(errors="replace").strip()
    with suppress(ValueError, AttributeError):
        text = json.loads(text).get("message") or text
    said = text or f"status {response.status_code}"
    if response.status_code in NOT_RUNNING:
        return Rejected(f"it does not run: {said}", reason="NotRunning")
    if response.status_code in (401, 403):
        return Rejected(
            f"you may not open its {what}: {said}; ask for the right to get "
            f"virtualmachineinstances/{what} of subresources.kubevirt.io",
            reason="Forbidden",
        )
    return DriverError(f"KubeVirt opens no {what}: {said}", reason="KubeVirtApiError")
