"""Machines and hosts as users write them, right or wrong, and definitions put on a server."""

import json
import time
from typing import Any

from novacron.localcluster.controlplane import ControlPlane

__all__ = ["Object", "host", "install", "machine", "network", "source", "static", "vm"]

Object = dict[str, Any]


def install(plane: ControlPlane, text: str, name: str) -> None:
    """Put a definition on the server and wait until it is served."""
    plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=text)
    # kubectl wait gives up at once on a definition that has no conditions yet.
    deadline = time.monotonic() + 60
    while not established(plane, name):
        assert time.monotonic() < deadline, f"{name} was not established in 60 s"
        time.sleep(0.05)


def established(plane: ControlPlane, name: str) -> bool:
    """Say whether the server serves the definition."""
    status = json.loads(plane.kubectl("get", "crd", name, "-o", "json")).get("status") or {}
    return any(
        condition["type"] == "Established" and condition["status"] == "True"
        for condition in status.get("conditions") or ()
    )


def put(tree: Object, path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for name in parents:
        tree = tree.setdefault(name, {})
    if value is None:
        tree.pop(last, None)
    else:
        tree[last] = value


def machine(name: str = "vm", **changes: Any) -> Object:
    """Return a small machine; changes are ``template__spec__image={...}`` and the like."""
    made: Object = {
        "apiVersion": "novacron.io/v1alpha1",
        "kind": "VirtualMachine",
        "metadata": {"name": name},
        "spec": {
            "template": {
                "spec": {
                    "resources": {"cpu": 1, "memory": "512Mi"},
                    "image": {"source": "builtin://tiny"},
                }
            }
        },
    }
    return changed(made, changes)


def host(name: str = "host", **changes: Any) -> Object:
    made: Object = {
        "apiVersion": "novacron.io/v1alpha1",
        "kind": "Host",
        "metadata": {"name": name},
        "spec": {
            "driver": "simulation",
            "simulation": {"capacity": {"cpu": 8, "memory": "16Gi", "disk": "1Ti"}},
        },
    }
    return changed(made, changes)


def changed(made: Object, changes: Object) -> Object:
    for path, value in changes.items():
        put(made["spec"], path.replace("__", "."), value)
    return made


def vm(**changes: Any) -> Object:
    """Return a machine with changes below spec.template.spec."""
    return machine(**{f"template__spec__{path}": value for path, value in changes.items()})


def network(**fields: Any) -> Object:
    return vm(networks=[{"name": "net", **fields}])


def static(address: str, gateway: str, family: str = "ipv4") -> Object:
    return network(**{family: {"method": "static", "address": address, "gateway": gateway}})


def source(text: str) -> Object:
    return vm(image__source=text)
