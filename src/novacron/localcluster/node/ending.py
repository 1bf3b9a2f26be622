"""Ending everything a node's agent left: for `novacron down`, also after the agent was killed.

Standard library only, because `down` must be quick and must always work.
"""

import signal
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from novacron.localcluster.identity import marked
from novacron.localcluster.node.marks import pods_mark
from novacron.localcluster.node.netlink import delete_link
from novacron.localcluster.node.records import Start, pod_records
from novacron.localcluster.node.subnet import recorded
from novacron.localcluster.processes import MARK

__all__ = ["end_pods"]

GRACE = timedelta(seconds=10)


def end_pods(directory: Path) -> int:
    """End all processes of pods and take the bridge away; return how many there were."""
    running = _running(directory)
    for start in running:
        start.process.signal(signal.SIGTERM)
    deadline = time.monotonic() + GRACE.total_seconds()
    for start in running:
        left = max(deadline - time.monotonic(), 0)
        if not start.keeper.wait(timedelta(seconds=left)):
            start.process.signal(signal.SIGKILL)
            start.keeper.wait(GRACE)
    # A keeper that was started and never wrote its record.
    for stray in marked(f"{MARK}={pods_mark(directory)}"):
        stray.signal(signal.SIGKILL)
        stray.wait(GRACE)
    if subnet := recorded(directory):
        # Whoever may not do this could not have made one.
        with suppress(PermissionError):
            delete_link(subnet.bridge)
    return len(running)


def _running(directory: Path) -> list[Start]:
    found = []
    for record in pod_records(directory):
        for container in record.containers():
            start = container.start()
            if start and start.keeper.alive():
                container.interrupt()
                found.append(start)
    return found
