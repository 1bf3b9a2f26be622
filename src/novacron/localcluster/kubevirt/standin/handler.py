"""The door of the virt-handlers that are played: what virt-api passes on to a guest's node.

A guest can be paused and let go on. Its console greets, and gives back what is typed; its screen
greets as a VNC server does. Resets are taken note of and change nothing.
"""

import asyncio
import logging
import re
import ssl
from copy import deepcopy
from dataclasses import dataclass

from novacron.localcluster.kubevirt.names import INSTANCES
from novacron.localcluster.kubevirt.standin.migratable import drop_condition, set_condition
from novacron.localcluster.kubevirt.standin.wire import (
    Request,
    answer,
    frames,
    read_request,
    send,
    upgrade,
)
from novacron.localcluster.kubevirt.standin.world import World
from novacron.localcluster.ports import LOOPBACK
from novacron.runtime.errors import ApiError, Conflict
from novacron.runtime.resource import Key

__all__ = ["Handler"]

log = logging.getLogger(__name__)

ROUTE = re.compile(r"/v1/namespaces/([^/]+)/virtualmachineinstances/([^/]+)/([a-z]+)")
PAUSED = ("Paused", "True", "PausedByUser", "VMI was paused by user")
SEEN_BY_THEN = 0.02
IDLE = ("softreboot", "reset")
GREETINGS = {
    "console": b"\r\nThis is a stand-in: no guest runs here. What you type comes back.\r\n",
    "vnc": b"RFB 003.008\n",
}


@dataclass(slots=True)
class Handler:
    """One listener for the virt-handlers of all nodes."""

    world: World

    async def listen(self, port: int, tls: ssl.SSLContext) -> asyncio.Server:
        """Answer from now on."""
        return await asyncio.start_server(self._serve, LOOPBACK, port, ssl=tls)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await read_request(reader)
            if request.path == "/healthz":
                ready = all(cache.is_synced for cache in self.world.caches)
                await answer(writer, 200 if ready else 503, "ok" if ready else "not yet")
            elif not writer.get_extra_info("peercert"):
                await answer(writer, 401, "who are you?")
            else:
                await self._act(request, reader, writer)
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return  # whoever asked has gone, or never meant us
        finally:
            writer.close()

    async def _act(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        found = ROUTE.fullmatch(request.path)
        instance = self.world.instances.get(Key(found[1], found[2])) if found else None
        if found is None or instance is None:
            await answer(writer, 404, "there is no such guest")
            return
        if not self.world.alive(instance["status"].get("nodeName")):
            return  # nobody answers on a dead node
        what = (request.method, found[3])
        if what[0] == "GET" and what[1] in GREETINGS:
            await upgrade(writer, request)
            await send(writer, GREETINGS[what[1]])
            async for data in frames(reader, writer):
                await send(writer, data)
        elif what in {("PUT", "pause"), ("PUT", "unpause")}:
            await self._pause(writer, Key(found[1], found[2]), paused=what[1] == "pause")
        elif what[0] == "PUT" and what[1] in IDLE:
            await answer(writer, 200, "done")
        else:
            await answer(writer, 404, f"{found[3]} is not played here")

    async def _pause(self, writer: asyncio.StreamWriter, key: Key, *, paused: bool) -> None:
        try:
            await self._note(key, paused=paused)
        except ApiError as error:
            await answer(writer, 500, error.message)
        else:
            await answer(writer, 200, "done")

    async def _note(self, key: Key, *, paused: bool) -> None:
        instance = deepcopy(self.world.instances.get(key))
        if instance is None:
            return  # there is nothing to pause any more
        if paused:
            set_condition(instance, *PAUSED)
        else:
            drop_condition(instance, "Paused")
        try:
            await self.world.handler.replace(INSTANCES, instance)
        except Conflict:
            # A real one does not fail because somebody else wrote meanwhile.
            await asyncio.sleep(SEEN_BY_THEN)
            await self._note(key, paused=paused)
