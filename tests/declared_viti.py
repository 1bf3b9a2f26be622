"""Machines, networks and classes of the Viti Stack family as users write them, right or wrong."""

from typing import Any

from declared import Object, changed

__all__ = ["disk", "machine", "machine_class", "network", "nic"]

API = "vitistack.io/v1alpha1"


def machine(name: str = "m", **changes: Any) -> Object:
    """Return a medium machine; changes are ``resources__cpu={...}`` and the like."""
    made: Object = {
        "apiVersion": API,
        "kind": "Machine",
        "metadata": {"name": name},
        "spec": {"template": "medium"},
    }
    return changed(made, changes)


def disk(**fields: Any) -> Object:
    """Return a machine with one more disk."""
    return machine(disks=[{"name": "data", "size": "1Gi"} | fields])


def nic(**fields: Any) -> Object:
    """Return a machine with one interface."""
    return machine(networks=[{"name": "eth0", "networkName": "lan"} | fields])


def network(name: str = "lan", **changes: Any) -> Object:
    """Return a network with a VLAN."""
    made: Object = {
        "apiVersion": API,
        "kind": "NetworkConfiguration",
        "metadata": {"name": name},
        "spec": {"vlan": 7},
    }
    return changed(made, changes)


def machine_class(name: str = "huge", **changes: Any) -> Object:
    """Return a class of 32 cores."""
    made: Object = {
        "apiVersion": API,
        "kind": "MachineClass",
        "metadata": {"name": name},
        "spec": {"cpu": {"cores": 32}, "memory": {"quantity": "128Gi"}},
    }
    return changed(made, changes)
