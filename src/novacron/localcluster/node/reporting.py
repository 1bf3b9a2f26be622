"""Tells the API server of one pod: its status whenever it changed, events, and its end."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Protocol

import orjson

from novacron.localcluster.node.node_context import PODS, WRITER, NodeContext
from novacron.localcluster.node.records import now
from novacron.localcluster.node.status import PodFacts, View, pod_status
from novacron.runtime.client import Request
from novacron.runtime.errors import ApiError, Conflict, NotFound
from novacron.runtime.resource import Object

__all__ = ["Reporting"]

log = logging.getLogger(__name__)

CONFLICT_PAUSE_SECONDS = 0.1
FAILURE_PAUSE_SECONDS = 2.0


class _Seen(Protocol):
    def view(self) -> View:
        """Return how a container is."""


Views = Callable[[], tuple[Sequence[_Seen], Sequence[_Seen]]]


class Reporting:
    """One pod's voice."""

    def __init__(
        self,
        node: NodeContext,
        pod: Callable[[], Object],
        containers: Views,
        facts: Callable[[], PodFacts],
    ) -> None:
        self._node = node
        self._pod = pod
        self._containers = containers
        self._facts = facts
        self._dirty = asyncio.Event()

    def changed(self) -> None:
        """Have the status looked at again."""
        self._dirty.set()

    def normal(self, reason: str, message: str) -> None:
        """Say that something went as it should."""
        self._node.events.normal(self._pod(), reason, message)

    def warning(self, reason: str, message: str) -> None:
        """Say that something needs a look."""
        self._node.events.warning(self._pod(), reason, message)

    async def run(self) -> None:
        """Write the status whenever it is another than the API server has."""
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            try:
                await self._write()
            except NotFound:
                continue  # the watch is about to tell of its removal
            except Conflict:
                await self._again(CONFLICT_PAUSE_SECONDS)
            except ApiError as error:
                log.warning("status of %s not written: %s", self._name, error.message)
                await self._again(FAILURE_PAUSE_SECONDS)

    async def farewell(self) -> None:
        """Write the last status, then let the API server forget the pod, however long it takes."""
        metadata = self._pod()["metadata"]
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}}
        path = PODS.path(metadata["namespace"], metadata["name"])
        request = Request("delete", "DELETE", path, body=orjson.dumps(body))
        while True:
            try:
                await self._write()
                await self._node.client.send(request)
            except NotFound:
                return
            except Conflict:
                # Either it changed, or another pod has its name by now.
                if self._pod()["metadata"]["uid"] != await self._uid_now():
                    return
                await asyncio.sleep(CONFLICT_PAUSE_SECONDS)
            except ApiError as error:
                log.warning("pod %s not removed: %s", self._name, error.message)
                await asyncio.sleep(FAILURE_PAUSE_SECONDS)
            else:
                return

    async def _write(self) -> None:
        pod = self._pod()
        init, main = self._containers()
        status = pod_status(
            pod, [c.view() for c in init], [c.view() for c in main], self._facts(), now()
        )
        before = pod.get("status") or {}
        if all(before.get(name) == value for name, value in status.items()):
            return
        metadata = pod["metadata"]
        # With its version: the conditions of others travel along and must be their latest.
        versioned = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        written = await self._node.client.patch(
            PODS,
            metadata["name"],
            {"metadata": versioned, "status": status},
            metadata["namespace"],
            subresource="status",
        )
        self._node.cache.remember(written, WRITER)

    async def _again(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self._dirty.set()

    async def _uid_now(self) -> str | None:
        metadata = self._pod()["metadata"]
        try:
            found = await self._node.client.get(PODS, metadata["name"], metadata["namespace"])
        except NotFound:
            return None
        self._node.cache.seen(found)
        return str(found["metadata"]["uid"])

    @property
    def _name(self) -> str:
        return str(self._pod()["metadata"]["name"])
