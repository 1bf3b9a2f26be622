"""One pod on this node, from its arrival to its removal."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta

from novacron.localcluster.node.container import Container
from novacron.localcluster.node.environment import Unmet
from novacron.localcluster.node.fields import UnknownField
from novacron.localcluster.node.launcher import Launcher
from novacron.localcluster.node.node_context import NodeContext
from novacron.localcluster.node.pod_volumes import PodVolumes
from novacron.localcluster.node.reporting import Reporting
from novacron.localcluster.node.sandbox import Sandbox
from novacron.localcluster.node.status import PodFacts, Terminated
from novacron.localcluster.node.support import Refusal, refusals
from novacron.runtime.errors import ApiError
from novacron.runtime.resource import Object

__all__ = ["Pod"]

log = logging.getLogger(__name__)

TRY_AGAIN_SECONDS = 2.0
FAILURE_PAUSE_SECONDS = 10.0
DEFAULT_GRACE_SECONDS = 30
# Whoever removes a pod by force does not want to wait.
FORCED_GRACE = timedelta(seconds=2)
INTERRUPTED = ("NodeShutdown", "the local cluster was stopped while this pod ran")


class Pod:
    """Runs a pod; its task ends when the pod is gone."""

    def __init__(self, pod: Object, node: NodeContext) -> None:
        self.latest = pod
        self._node = node
        self._failure: tuple[str, str] | None = None
        self._leaving = asyncio.Event()
        self._gone = False
        self._sandbox = Sandbox(node, node.record(pod))
        self._reporting = Reporting(node, lambda: self.latest, self._views, self._facts)
        self._volumes = PodVolumes(
            node, lambda: self.latest, self._sandbox.record.volumes, self._reporting
        )
        spec = pod["spec"]
        self._init = [self._container(each) for each in spec.get("initContainers") or ()]
        self._main = [self._container(each) for each in spec["containers"]]

    def update(self, pod: Object) -> None:
        """Take in how the pod is now."""
        self.latest = pod
        if "deletionTimestamp" in pod["metadata"]:
            self._leaving.set()
        self._volumes.wake()
        self._reporting.changed()

    def vanish(self) -> None:
        """Take in that the API server knows the pod no more."""
        self._gone = True
        self._leaving.set()

    async def run(self) -> None:
        """Run the pod until it is deleted, and leave nothing of it."""
        self.update(self.latest)
        work = asyncio.create_task(self._work())
        telling = asyncio.create_task(self._reporting.run())
        try:
            await self._leaving.wait()
            await _cancelled(work)
            await self._stop(self._grace())
            await _cancelled(telling)
            if not self._gone:
                await self._reporting.farewell()
            await self._volumes.close()
            self._sandbox.close()
            self._sandbox.record.remove()
        finally:
            await _cancelled(work)
            await _cancelled(telling)

    async def interrupt(self, longest: timedelta) -> None:
        """End the processes because the node goes down; the pod is run again when it is back."""
        for container in (*self._init, *self._main):
            container.record.interrupt()
        await self._stop(min(self._grace(), longest))
        self._sandbox.disconnect()

    async def _work(self) -> None:
        while True:
            try:
                await self._run_containers()
                return
            except Exception:
                # One pod must not take the others along.
                log.exception("pod %s failed in an unforeseen way", self._sandbox.record.name)
                self._reporting.warning("InternalError", "the log of the node says why")
            await asyncio.sleep(FAILURE_PAUSE_SECONDS)

    async def _run_containers(self) -> None:
        refused = refusals(self.latest, self._node.image)
        for container in (*self._init, *self._main):
            if refusal := refused.get(container.name):
                container.wait_because(*refusal)
        if refused:
            self._tell_refusal(*next(iter(refused.items())))
            return
        launcher = await self._furnished()
        keeping = asyncio.create_task(self._volumes.keep())
        try:
            if await self._initialize(launcher):
                async with asyncio.TaskGroup() as group:
                    for container in self._main:
                        group.create_task(self._run(container, launcher))
        finally:
            await _cancelled(keeping)
        await self._settle()

    def _tell_refusal(self, name: str, refusal: Refusal) -> None:
        told = (_known(self.latest, name) or {}).get("state", {}).get("waiting", {})
        if told.get("reason") != refusal.reason:  # an agent before this one may have said it
            self._reporting.warning(*refusal)

    async def _settle(self) -> None:
        """Give back what a pod needs no more when all its containers have ended for good."""
        if any(container.interrupted for container in (*self._init, *self._main)):
            self._failure = INTERRUPTED
            self._reporting.changed()
        self._sandbox.close()
        await self._volumes.close()

    async def _furnished(self) -> Launcher:
        """Make network and volumes, however long what they need takes to appear."""
        while True:
            try:
                await self._sandbox.open(self.latest)
                self._reporting.changed()
                await self._volumes.prepare(self._facts())
                break
            except (Unmet, UnknownField) as missing:
                self._reporting.warning("FailedMount", str(missing))
            except (OSError, ApiError) as error:
                log.warning("pod %s: %s", self._sandbox.record.name, error)
                self._reporting.warning("FailedCreatePodSandBox", str(error))
            await self._volumes.pause(TRY_AGAIN_SECONDS)
        return self._volumes.launcher(self._sandbox)

    async def _initialize(self, launcher: Launcher) -> bool:
        for container in self._init:
            how = await self._run(container, launcher)
            if how.code:
                return False
            container.hear(ready=True)
        return True

    async def _run(self, container: Container, launcher: Launcher) -> Terminated:
        return await container.run(launcher, self._sandbox.address)

    async def _stop(self, grace: timedelta) -> None:
        containers = (*self._init, *self._main)
        await asyncio.gather(*(container.stop(grace) for container in containers))

    def _container(self, spec: Object) -> Container:
        policy = self.latest["spec"].get("restartPolicy", "Always")
        is_init = spec in (self.latest["spec"].get("initContainers") or ())
        container = Container(
            spec,
            self._sandbox.record.container(spec["name"]),
            # An init container that went well is done, whatever the pod does with the others.
            "OnFailure" if is_init and policy == "Always" else policy,
            self._grace(),
            self._reporting.changed,
            self._reporting,
        )
        container.recall(_known(self.latest, spec["name"]))
        return container

    def _views(self) -> tuple[Sequence[Container], Sequence[Container]]:
        return self._init, self._main

    def _facts(self) -> PodFacts:
        return PodFacts(
            self._node.address,
            self._node.image.identity,
            self._sandbox.shown_address(self.latest),
            self._failure,
        )

    def _grace(self) -> timedelta:
        if self._gone:
            return FORCED_GRACE
        metadata, spec = self.latest["metadata"], self.latest["spec"]
        seconds = metadata.get("deletionGracePeriodSeconds")
        if seconds is None:
            seconds = spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE_SECONDS)
        return timedelta(seconds=seconds)


def _known(pod: Object, name: str) -> Object | None:
    status = pod.get("status") or {}
    every = (
        *(status.get("initContainerStatuses") or ()),
        *(status.get("containerStatuses") or ()),
    )
    return next((each for each in every if each["name"] == name), None)


async def _cancelled(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
