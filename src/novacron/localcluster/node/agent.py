"""The agent of the node: follows the pods that were given to it and runs each of them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from datetime import timedelta

from novacron.localcluster.layout import NODE_NAME
from novacron.localcluster.node.endpoint import Asked, LogRequest
from novacron.localcluster.node.log_reading import lines_of, shown
from novacron.localcluster.node.node_context import NodeContext
from novacron.localcluster.node.pod import Pod
from novacron.localcluster.node.records import PodRecord, pod_records
from novacron.localcluster.node.waiting import end
from novacron.runtime.cache import Change
from novacron.runtime.reflector import Reflector
from novacron.runtime.resource import Key, Object

__all__ = ["Agent"]

log = logging.getLogger(__name__)

# `novacron down` waits a little longer than this.
LONGEST_GRACE = timedelta(seconds=10)
STRAY_GRACE = timedelta(seconds=2)


@dataclass(slots=True)
class Agent:
    """Everything that runs on this node."""

    node: NodeContext
    _pods: dict[Key, Pod] = field(default_factory=dict)
    _tasks: "dict[Pod, asyncio.Task[None]]" = field(default_factory=dict)
    _sweeping: "set[asyncio.Task[None]]" = field(default_factory=set)
    _left: list[Pod] = field(default_factory=list)

    @property
    def ready(self) -> bool:
        """Say whether the pods of this node are known."""
        return self.node.cache.is_synced

    async def run(self) -> None:
        """Run pods until cancelled; their processes stay."""
        reflector = Reflector(
            self.node.client, self.node.cache, selector=f"spec.nodeName={NODE_NAME}"
        )
        following = asyncio.create_task(reflector.run())
        try:
            await self.node.cache.synced()
            self.node.cache.subscribe(self._changed)
            await self._sweep()
            await following
        finally:
            self._left = list(self._tasks)
            tasks = [following, *self._tasks.values(), *self._sweeping]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def interrupt(self) -> None:
        """End the processes of all pods that ran; they begin again when the node is back."""
        await asyncio.gather(*(pod.interrupt(LONGEST_GRACE) for pod in self._left))

    async def send_log(self, request: LogRequest, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Send what a container wrote."""
        record = self._record(request)
        container = record.container(request.container)
        start = container.start()
        where = f'container "{request.container}" in pod "{request.pod}"'
        if start is None:
            raise Asked(400, f"{where} is waiting to start")
        runs = start.keeper.alive()
        attempt = start.attempt - 1 if request.previous and runs else start.attempt
        if attempt < 0 or not container.log(attempt).exists():
            raise Asked(400, f"previous terminated {where} not found")
        await send(b"")
        left = request.wish.limit
        lines = lines_of(container.log(attempt), request.wish, lambda: not start.keeper.alive())
        async with aclosing(lines):
            async for line in lines:
                data = shown(line, timestamps=request.wish.timestamps)
                await send(data[:left])
                left = None if left is None else left - len(data)
                if left is not None and left <= 0:
                    return

    def _record(self, request: LogRequest) -> PodRecord:
        pod = self.node.cache.get(Key(request.namespace, request.pod))
        if pod is None:
            raise Asked(404, f'pod "{request.pod}" is not on this node')
        return self.node.record(pod)

    def _changed(self, change: Change) -> None:
        known, pod = self._pods.get(change.key), change.object
        if known and (pod is None or _uid(pod) != _uid(known.latest)):
            known.vanish()
            del self._pods[change.key]
            known = None
        if pod is None:
            self._sweep_soon()
        elif known:
            known.update(pod)
        elif not _is_over(pod):
            self._begin(change.key, pod)

    def _begin(self, key: Key, obj: Object) -> None:
        pod = Pod(obj, self.node)
        self._pods[key] = pod
        task = self._tasks[pod] = asyncio.create_task(pod.run())
        task.add_done_callback(lambda done: self._over(key, pod, done))

    def _over(self, key: Key, pod: Pod, task: "asyncio.Task[None]") -> None:
        self._tasks.pop(pod, None)
        if self._pods.get(key) is pod:
            del self._pods[key]
        if not task.cancelled() and (error := task.exception()):
            log.error("pod %s was given up", key, exc_info=error)

    def _sweep_soon(self) -> None:
        task = asyncio.create_task(self._sweep())
        self._sweeping.add(task)
        task.add_done_callback(self._sweeping.discard)

    async def _sweep(self) -> None:
        """End and forget what is on record of pods that are no more."""
        current = {_uid(pod) for pod in self.node.cache.objects()}
        current |= {_uid(pod.latest) for pod in self._tasks}
        for record in pod_records(self.node.directory):
            if record.uid in current:
                continue
            for container in record.containers():
                start = container.start()
                if start and start.keeper.alive():
                    await end(start, STRAY_GRACE)
            with suppress(OSError):
                record.remove()


def _uid(pod: Object) -> str:
    return str(pod["metadata"]["uid"])


def _is_over(pod: Object) -> bool:
    done = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return done and "deletionTimestamp" not in pod["metadata"]
