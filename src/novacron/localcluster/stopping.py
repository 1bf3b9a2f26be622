"""Stopping the programs of a control plane, those that lean on others first."""

from datetime import timedelta

from novacron.localcluster.components import COMPONENTS
from novacron.localcluster.kubevirt.names import PROGRAMS
from novacron.localcluster.layout import Layout
from novacron.localcluster.node.ending import end_pods
from novacron.localcluster.node_program import NODE_GRACE
from novacron.localcluster.processes import GRACE

__all__ = ["stop_all", "stop_component"]

ALL = (*COMPONENTS, *PROGRAMS)


def stop_all(layout: Layout) -> list[str]:
    """Stop everything; return what was running."""
    return [name for name in reversed(ALL) if stop_component(layout, name)]


def stop_component(layout: Layout, name: str) -> bool:
    """Stop one program, and with the node its pods; say whether there was anything to stop."""
    grace: timedelta = NODE_GRACE if name == "node" else GRACE
    stopped = layout.processes.stop(name, grace)
    if name == "node":
        # Also when the agent does not run: what it left behind may.
        stopped = bool(end_pods(layout.node)) or stopped
    return stopped
