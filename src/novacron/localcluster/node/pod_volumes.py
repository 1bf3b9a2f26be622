"""Keeps the volumes of one running pod current: Secrets, ConfigMaps, its own fields, tokens."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from novacron.localcluster.node.container import Narrator
from novacron.localcluster.node.environment import Unmet
from novacron.localcluster.node.launcher import Launcher
from novacron.localcluster.node.marks import pods_mark
from novacron.localcluster.node.node_context import NodeContext
from novacron.localcluster.node.payload import Payload, references, token_wishes
from novacron.localcluster.node.sandbox import Sandbox
from novacron.localcluster.node.status import PodFacts
from novacron.localcluster.node.tokens import Tokens
from novacron.localcluster.node.volumes import Volumes
from novacron.runtime.errors import ApiError
from novacron.runtime.resource import Object, Resource

__all__ = ["PodVolumes"]

log = logging.getLogger(__name__)

TRY_AGAIN_SECONDS = 5.0


class PodVolumes:
    """One pod's volumes, and whatever they are made from."""

    def __init__(
        self, node: NodeContext, pod: Callable[[], Object], directory: Path, narrator: Narrator
    ) -> None:
        self._node = node
        self._latest = pod
        self._narrator = narrator
        self._volumes = Volumes(directory, pod())
        self._tokens = Tokens(node.client, pod())
        self._addresses: Object = {}
        self._changed = asyncio.Event()
        self._due: float | None = None

    def wake(self) -> None:
        """Have everything looked at again."""
        self._changed.set()

    async def prepare(self, facts: PodFacts) -> None:
        """Make every volume; Unmet when something is not there yet."""
        pod = self._latest()
        self._addresses = {"podIP": facts.address, "hostIP": facts.node_address}
        metadata = pod["metadata"]
        self._node.sources.hold(metadata["uid"], metadata["namespace"], references(pod), self.wake)
        await self._node.sources.known(metadata["uid"])
        await self._refresh()

    async def keep(self) -> None:
        """Follow every change, until cancelled."""
        while True:
            await self.pause(self._due)
            try:
                await self._refresh()
            except Unmet as missing:
                # What was there is gone: the files stay as they were, as with a kubelet.
                self._narrator.warning("FailedMount", str(missing))
            except (ApiError, OSError) as error:
                log.warning("volumes of %s: %s", self._latest()["metadata"]["name"], error)
                self._due = TRY_AGAIN_SECONDS

    async def pause(self, seconds: float | None) -> None:
        """Wait until something changed, or for so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        self._changed.clear()

    async def close(self) -> None:
        """Follow nothing any more."""
        await self._node.sources.release(self._latest()["metadata"]["uid"])

    def launcher(self, sandbox: Sandbox) -> Launcher:
        """Return what starts the pod's containers with these volumes."""
        return Launcher(
            pod=self._pod,
            record=sandbox.record,
            image=self._node.image,
            volumes=self._volumes,
            lookup=self._lookup,
            given=sandbox.variables(),
            files=sandbox.files(self._latest()),
            network=sandbox.handle,
            allocatable=self._node.allocatable,
            mark=pods_mark(self._node.directory),
        )

    async def _refresh(self) -> None:
        due = await self._tokens.renew(token_wishes(self._latest()))
        self._due = max(due.total_seconds(), 1.0) if due else None
        self._volumes.refresh(
            Payload(self._pod(), self._lookup, self._tokens.get, self._node.allocatable)
        )

    def _pod(self) -> Object:
        """Return the pod with its addresses, which its status may not tell yet."""
        pod = self._latest()
        return {**pod, "status": {**(pod.get("status") or {}), **self._addresses}}

    def _lookup(self, resource: Resource, name: str) -> Object | None:
        namespace = self._latest()["metadata"]["namespace"]
        return self._node.sources.get(resource, namespace, name)
