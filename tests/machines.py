"""Objects for tests: a VirtualMachine and a Host, each as small as it can be."""

from typing import Any

Object = dict[str, Any]

__all__ = ["condition", "host", "virtual_machine"]


def virtual_machine(
    name: str,
    namespace: str,
    *,
    cpu: int = 1,
    memory: str = "1Gi",
    disk: str = "10Gi",
    running: bool = True,
    on: str | None = None,
    **template: Any,
) -> Object:
    """Return a VirtualMachine; ``on`` names the only host that will do."""
    spec: Object = {
        "resources": {"cpu": cpu, "memory": memory, "disk": disk},
        "image": {"source": "builtin://tiny"},
        **template,
    }
    if on:
        spec["nodeSelector"] = {"test/host": on}
    return {
        "apiVersion": "novacron.io/v1alpha1",
        "kind": "VirtualMachine",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"running": running, "template": {"spec": spec}},
    }


def host(
    name: str,
    *,
    cpu: int = 1000,
    memory: str = "4Ti",
    disk: str = "100Ti",
    simulation: Object | None = None,
    **spec: Any,
) -> Object:
    """Return a simulated Host that machines can choose by its name."""
    capacity = {"cpu": cpu, "memory": memory, "disk": disk}
    return {
        "apiVersion": "novacron.io/v1alpha1",
        "kind": "Host",
        "metadata": {"name": name},
        "spec": {
            "driver": "simulation",
            "labels": {"test/host": name},
            "simulation": {"capacity": capacity, **(simulation or {})},
            **spec,
        },
    }


def condition(obj: Object, name: str) -> Object:
    """Return one condition of an object, empty when it has none."""
    for entry in (obj.get("status") or {}).get("conditions") or ():
        if entry["type"] == name:
            found: Object = entry
            return found
    return {}
