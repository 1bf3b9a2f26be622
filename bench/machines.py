"""The objects of the benchmark: the machines every contender brings to Running, and the hosts.

Shared by the process that creates, the one that watches and the one that measures.
"""

from typing import Any

__all__ = ["API_VERSION", "CANARY", "COLLECTION", "NAMESPACE", "PREFIX", "host", "machine", "name"]

API_VERSION = "novacron.io/v1alpha1"
NAMESPACE = "default"
COLLECTION = f"/apis/{API_VERSION}/namespaces/{NAMESPACE}/virtualmachines"
PREFIX = "vm-"
CANARY = "canary"


def name(index: int) -> str:
    """Return the name of the machine with this number."""
    return f"{PREFIX}{index:05d}"


def machine(name: str) -> dict[str, Any]:
    """Return a small machine as a user would write it."""
    return {
        "apiVersion": API_VERSION,
        "kind": "VirtualMachine",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "running": True,
            "template": {
                "metadata": {"labels": {"app": "bench"}},
                "spec": {
                    "resources": {"cpu": 1, "memory": "1Gi", "disk": "10Gi"},
                    "image": {"source": "marketplace://ubuntu-22.04-lts"},
                    "networks": [{"name": "default", "type": "bridge"}],
                },
            },
        },
    }


def host(name: str) -> dict[str, Any]:
    """Return a simulated host; twenty of them have room for all machines of any benchmark."""
    capacity = {"cpu": 4096, "memory": "16Ti", "disk": "200Ti"}
    return {
        "apiVersion": API_VERSION,
        "kind": "Host",
        "metadata": {"name": name},
        "spec": {"driver": "simulation", "simulation": {"capacity": capacity}},
    }
