"""Explains the placement of a VirtualMachine for the command line."""

from collections.abc import Iterable
from typing import Any

from novacron.app.registry import HOST_KIND
from novacron.controllers.explanation import decide_again
from novacron.families.novacron.translate import VirtualMachineKind
from novacron.scheduler import Decision

__all__ = ["explained"]

Object = dict[str, Any]


def explained(
    machine: Object,
    hosts: Iterable[Object],
    machines: Iterable[Object],
    namespaces: Iterable[Object],
) -> Decision:
    """Decide once more where a VirtualMachine would go, among these hosts and machines."""
    kind = VirtualMachineKind()
    return decide_again(
        HOST_KIND, kind, machine, hosts=hosts, machines=machines, namespaces=namespaces
    )
