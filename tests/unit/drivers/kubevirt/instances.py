"""Instances that run what a plan says, as KubeVirt would tell of them."""

from copy import deepcopy
from typing import Any

from novacron.core.machine import MachinePlan
from novacron.drivers.kubevirt.convert import template, virtual_machine

__all__ = ["instance_of", "machine_of"]

Object = dict[str, Any]


def machine_of(plan: MachinePlan) -> Object:
    """Return the VirtualMachine of a plan."""
    found = deepcopy(virtual_machine(plan, owned=True))
    found["metadata"]["uid"] = "vm-uid"
    return found


def instance_of(plan: MachinePlan, **status: Any) -> Object:
    """Return a running instance of a plan."""
    spec = deepcopy(template(plan)["spec"])
    return {
        "metadata": {"name": plan.ref.name, "uid": "vmi-uid", "labels": {}},
        "spec": spec,
        "status": {"phase": "Running", **status},
    }
