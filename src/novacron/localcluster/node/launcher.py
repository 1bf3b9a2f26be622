"""Starts the containers of one pod: what each is told, and the keeper that carries it out."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from novacron.localcluster.node.enter import Errand
from novacron.localcluster.node.environment import Lookup, Variables, expand
from novacron.localcluster.node.image import ENTRY_POINT, OwnImage
from novacron.localcluster.node.order import Mount, Order
from novacron.localcluster.node.records import PodRecord, Start
from novacron.localcluster.node.security import has_read_only_root, user_of
from novacron.localcluster.node.volumes import Volumes
from novacron.localcluster.node.waiting import ended, readable
from novacron.localcluster.processes import MARK
from novacron.runtime.resource import Object

__all__ = ["Launcher", "NotStarted", "hostname_of"]

KEEPER = "novacron.localcluster.node.keeper"
MESSAGE_PLACE = "/dev/termination-log"


class NotStarted(Exception):
    """The keeper itself failed; the message says where to look."""


@dataclass(frozen=True, slots=True)
class Launcher:
    """All that the containers of a pod have in common."""

    pod: Callable[[], Object]
    record: PodRecord
    image: OwnImage
    volumes: Volumes
    lookup: Lookup
    given: Mapping[str, str]
    files: Mapping[str, str]
    network: int | None
    allocatable: Mapping[str, str]
    mark: str

    async def start(self, container: Object, attempt: int) -> Start:
        """Start a container; Unmet when what it refers to is not there."""
        record = self.record.container(container["name"])
        record.prepare()
        record.message(attempt).touch()
        record.message(attempt).chmod(0o666)
        keeper = _spawn(self._order(container, attempt), self.mark)
        await _word(keeper)
        start = record.start()
        if start and start.keeper.pid == keeper.pid:
            _reap_later(keeper, start)
            return start
        keeper.wait()
        # An agent died between starting a keeper and hearing of it: that one has the container.
        if start and start.keeper.alive():
            return start
        raise NotStarted("its keeper did not start; the log of the node says why")

    def errand(self, container: Object, start: Start, command: Sequence[str]) -> Errand:
        """Return how to run a command beside a container's process."""
        environ = Path(f"/proc/{start.process.pid}/environ").read_bytes().decode(errors="replace")
        pairs = (entry.partition("=") for entry in environ.split("\0") if entry)
        return Errand(
            start.process.pid,
            list(command),
            {name: value for name, _, value in pairs},
            container.get("workingDir") or "/",
            user_of(self.pod(), container),
        )

    def _order(self, container: Object, attempt: int) -> Order:
        pod = self.pod()
        variables = Variables(pod, self.lookup, self.allocatable).of(
            container, {**self.image.environment(), **self.given}
        )
        entry = container.get("command") or ENTRY_POINT
        command = [expand(each, variables) for each in (*entry, *(container.get("args") or ()))]
        record = self.record.container(container["name"])
        place = container.get("terminationMessagePath") or MESSAGE_PLACE
        return Order(
            directory=str(record.directory),
            attempt=attempt,
            hostname=hostname_of(pod),
            command=command,
            environment=variables,
            working_directory=container.get("workingDir") or "/",
            user=user_of(pod, container),
            root=self.image.root(dict(self.files), read_only=has_read_only_root(container)),
            mounts=[*self.volumes.mounts(container), Mount(str(record.message(attempt)), place)],
            network=self.network,
        )


def hostname_of(pod: Object) -> str:
    """Return the name that a pod's containers have for their machine."""
    return str(pod["spec"].get("hostname") or pod["metadata"]["name"])[:63].rstrip("-.")


def _spawn(order: Order, mark: str) -> "subprocess.Popen[bytes]":
    # What it is told may hold secrets: it travels in memory, not in a file and not in arguments.
    told = os.memfd_create("order")
    try:
        os.write(told, order.encode())
        os.lseek(told, 0, os.SEEK_SET)
        return subprocess.Popen(
            (sys.executable, "-m", KEEPER),
            stdin=told,
            stdout=subprocess.PIPE,
            env={MARK: mark},
            cwd="/",
            pass_fds=() if order.network is None else (order.network,),
            start_new_session=True,
        )
    finally:
        os.close(told)


async def _word(keeper: "subprocess.Popen[bytes]") -> None:
    """Wait until the keeper has said how the start went, or is gone."""
    assert keeper.stdout is not None
    try:
        await readable(keeper.stdout.fileno())
    finally:
        keeper.stdout.close()


def _reap_later(keeper: "subprocess.Popen[bytes]", start: Start) -> None:
    async def reap() -> None:
        await ended(start.keeper)
        keeper.wait()

    task = asyncio.get_running_loop().create_task(reap())
    _REAPING.add(task)
    task.add_done_callback(_REAPING.discard)


# A task that nobody holds may be forgotten by the loop.
_REAPING: set["asyncio.Task[None]"] = set()
